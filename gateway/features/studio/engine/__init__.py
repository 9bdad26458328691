"""Things that people and programs change while the gateway runs: rooms, checked before and after every save."""
