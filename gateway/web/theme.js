/** Light, dark, or as the system: chosen before the page is drawn, so that it does not flash. */

(() => {
  const NAME = "stepgate.theme";
  const root = document.documentElement;
  const apply = (theme) => {
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
    else delete root.dataset.theme;
  };
  try {
    apply(localStorage.getItem(NAME));
  } catch {
    // A browser that keeps nothing shows the system's colours.
  }
  window.stepgateTheme = {
    get: () => root.dataset.theme ?? "system",
    set(theme) {
      apply(theme);
      try {
        if (theme === "system") localStorage.removeItem(NAME);
        else localStorage.setItem(NAME, theme);
      } catch {
        // It holds until the page is closed.
      }
    },
  };
})();
