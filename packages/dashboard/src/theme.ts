export type Theme = 'light' | 'dark'

const STORED = 'impresario.theme'

export function currentTheme(): Theme {
  return document.documentElement.dataset['theme'] === 'dark' ? 'dark' : 'light'
}

export function toggleTheme(): Theme {
  const next = currentTheme() === 'dark' ? 'light' : 'dark'
  document.documentElement.dataset['theme'] = next
  localStorage.setItem(STORED, next)
  return next
}
