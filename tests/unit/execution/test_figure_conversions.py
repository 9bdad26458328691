"""Figures in other units, scales, clocks and notations than their evidence."""

import pytest

from agent.answers.figures import find_unexplained_figures


@pytest.mark.parametrize(
    ("evidence", "true", "invented"),
    [
        ('{"pressure": "2.5 bar"}', "It is 250 kPa or 36 psi.", "It is 280 kPa or 42 psi."),
        ('{"power": "150 kW"}', "The engine has 204 hp.", "The engine has 240 hp."),
        ('{"leistung": "150 kW"}', "Der Motor leistet 204 PS.", "Der Motor leistet 220 PS."),
        ('{"tank": "50 l"}', "It holds 13.2 US gallons.", "It holds 14.6 US gallons."),
        ('{"area_m2": 85}', "The flat has 915 sq ft.", "The flat has 951 sq ft."),
        ('{"height": "5 ft 11 in"}', "He is 180 cm tall.", "He is 187 cm tall."),
        ('{"height": "1.80 m"}', "He is 5 ft 11 in tall.", "He is 6 ft 3 in tall."),
        ("Rotterdam | 14.8 Mt", "Rotterdam handled 14.8 million tonnes.", "Rotterdam handled 18.4 million tonnes."),
        ("emissions: 512 kt CO2", "It emitted 512,000 tonnes.", "It emitted 521,000 tonnes."),
        ("shipped: 25 MT", "25 tonnes were shipped.", "35 tonnes were shipped."),
        ("capacity: 3.2 GW", "It can give 3,200 MW.", "It can give 3,800 MW."),
        ("3412 kWh, 31,5 ct/kWh", "Das sind rund 1.075 €.", "Das sind rund 1.250 €."),
        ("ends 2029-02-28, notice 6 months", "Give notice by 31 August 2028.", "Give notice by 30 November 2027."),
        ('{"bandwidth": "1 Gbit/s"}', "The link has 1,000 Mbit/s.", "The link has 1,500 Mbit/s."),
        ('{"strecke_km": 250}', "Sträckan är 25 mil.", "Sträckan är 28 mil."),
        ('{"size": 53687091200}', "It has 50 GiB, that is 53.7 GB.", "It has 58 GiB."),
        ('{"amount_cents": 129900}', "It costs $1,299.00.", "It costs $1,399.00."),
        ("Cash flow SEK 702 million", "| SEK m | |\n|---|---|\n| Cash flow | 702 |", "Cash flow (SEK m): 720"),
        ("Sales $4,812 million in 2023", "Sales (in $bn): 4.8", "Sales (in $bn): 5.1"),
        ("| NOK m |\n| Revenue | 8,412 |", "Revenue was NOK 8.4 billion.", "Revenue was NOK 9.4 billion."),
        ("| Mkr |\n| Intäkter | 412,6 |", "Intäkterna var 412,6 miljoner kronor.", "De var 421,6 miljoner kronor."),
        ('{"ts": 1709649000}', "It was on 5 March 2024 at 14:30 UTC.", "It was on 5 March 2024 at 15:40 UTC."),
        ('{"created": "2024-06-05T12:30:00Z"}', "It was made at 14:30 CEST.", "It was made at 14:45 CEST."),
        (
            '{"created": "2024-03-05T23:30:00Z"}',
            "It was made on 6 March 2024 at 00:30 (Berlin time).",
            "It was made on 7 March 2024 (Berlin time).",
        ),
        ("Date: Tue, 5 Mar 2024 14:30:00 +0100", "It came at 13:30 UTC.", "It came at 12:45 UTC."),
        ('{"seconds": 12705}', "The run took 3:31:45.", "The run took 3:41:45."),
        ('{"date": "2024-03-15"}', "It was in week 11.", "It was in week 14."),
        ('{"datum": "2024-03-15"}', "In der 11. Kalenderwoche.", "In der 14. Kalenderwoche."),
        ("Today is 2026-11-29.", "Tomorrow, 30 November, is a Monday.", "Tomorrow, 2 December, is a holiday."),
        (
            "Heute ist der 29.11.2026",
            "Nächster Dienstag ist der 1. Dezember.",
            "Nächster Dienstag ist der 3. Dezember.",
        ),
        ("Phone: +46 70 123 45 67", "Ring 0701234567.", "Ring 0701243567."),
        ("Tel. +49 30 9018200", "Tel. +49 (0)30 9018200", "Tel. +49 (0)30 9018300"),
        ("Call (415) 555-0142", "Call +1 415 555 0142.", "Call +1 415 555 0412."),
    ],
)
def test_a_converted_figure(evidence: str, true: str, invented: str) -> None:
    assert find_unexplained_figures(true, evidence) == []
    assert find_unexplained_figures(invented, evidence)
