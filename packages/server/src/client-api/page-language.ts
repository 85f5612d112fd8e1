const PAGE_LANGUAGES = ['en', 'ru', 'es'] as const
export type PageLanguage = (typeof PAGE_LANGUAGES)[number]

/** Longer lists are cut: nobody reads more languages than fit into this. */
const HEADER_LENGTH_MAX = 1_000

/** The language of a page for people: the most wanted one that there is (RFC 9110, 12.5.4), else English. */
export function pageLanguage(acceptLanguage: string | undefined): PageLanguage {
  let best: PageLanguage = 'en'
  let weight = 0
  for (const range of (acceptLanguage ?? '').slice(0, HEADER_LENGTH_MAX).split(',')) {
    const [tag = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase())
    const language = PAGE_LANGUAGES.find((one) => tag === one || tag.startsWith(`${one}-`))
    if (language === undefined) continue
    const said = parameters.find((parameter) => parameter.startsWith('q='))
    const wanted = said === undefined ? 1 : Number(said.slice(2))
    if (wanted > weight) {
      best = language
      weight = wanted
    }
  }
  return best
}
