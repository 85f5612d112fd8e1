// Before the first paint, so that a dark page does not flash white.
;(() => {
  const chosen = localStorage.getItem('impresario.theme')
  const isDark = chosen === 'dark' || (chosen !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches)
  document.documentElement.dataset.theme = isDark ? 'dark' : 'light'
})()
