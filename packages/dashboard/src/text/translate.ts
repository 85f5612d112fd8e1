import type { en } from './en.ts'

export type TextKey = keyof typeof en
export type Texts = Readonly<Record<TextKey, string>>
export const LANGUAGES = { en: 'English', ru: 'Русский', es: 'Español' } as const
export type Language = keyof typeof LANGUAGES
export type Translate = (key: TextKey, values?: Readonly<Record<string, string | number>>) => string

/**
 * Puts values into `{name}`. A text with forms (`one|few|many`) is chosen by `n`, in the order in which the language counts
 * them.
 */
export function translator(language: Language, texts: Texts): Translate {
  const rules = new Intl.PluralRules(language)
  const numbers = new Intl.NumberFormat(language)
  return (key, values = {}) => {
    const forms = texts[key].split('|')
    const n = values['n']
    const form = forms.length > 1 && typeof n === 'number' ? forms[FORMS[language].indexOf(rules.select(n))] : forms[0]
    return (form ?? forms.at(-1) ?? '').replaceAll(/\{(\w+)\}/g, (whole, name: string) => {
      const value = values[name]
      return typeof value === 'number' ? numbers.format(value) : (value ?? whole)
    })
  }
}

/** In this order the forms of a text stand. */
const FORMS: Readonly<Record<Language, readonly Intl.LDMLPluralRule[]>> = {
  en: ['one', 'other'],
  es: ['one', 'other'],
  ru: ['one', 'few', 'many'],
}
