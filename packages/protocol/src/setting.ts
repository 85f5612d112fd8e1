/** The values that a setting may have, as server and workers read them from the environment or a file. */
export type SettingType =
  | { readonly type: 'integer' | 'number' | 'seconds'; readonly min: number; readonly max: number }
  | { readonly type: 'choice'; readonly of: readonly string[] }
  | { readonly type: 'switch' }

const ON: ReadonlySet<string> = new Set(['true', 'yes', 'on', '1'])
const OFF: ReadonlySet<string> = new Set(['false', 'no', 'off', '0'])
/** Names of log levels that other systems use. */
const SYNONYMS: Readonly<Record<string, string>> = { warning: 'warn', critical: 'error', fatal: 'error' }

export function isSettingType(key: { readonly type: string }): key is SettingType {
  return ['integer', 'number', 'seconds', 'choice', 'switch'].includes(key.type)
}

/** The value that the text stands for; `undefined` if it is not allowed. Choices are read in lower case. */
export function readSetting(key: SettingType, text: string): number | string | boolean | undefined {
  const word = text.trim().toLowerCase()
  switch (key.type) {
    case 'integer':
    case 'number':
    case 'seconds': {
      const value = word === '' ? Number.NaN : Number(word)
      const isGood = key.type === 'integer' ? Number.isInteger(value) : Number.isFinite(value)
      return isGood && value >= key.min && value <= key.max ? value : undefined
    }
    case 'choice': {
      const choices = new Set(key.of.map((one) => one.toLowerCase()))
      return [word, SYNONYMS[word]].find((one) => one !== undefined && choices.has(one))
    }
    case 'switch':
      return ON.has(word) || (OFF.has(word) ? false : undefined)
  }
}

/** What is allowed, for errors and for the reference. */
export function allowedValues(key: SettingType): string {
  switch (key.type) {
    case 'integer':
      return `a whole number from ${key.min} to ${key.max}`
    case 'number':
      return `a number from ${key.min} to ${key.max}`
    case 'seconds':
      return `a number of seconds from ${key.min} to ${key.max}`
    case 'choice':
      return `one of ${key.of.join(', ')}`
    case 'switch':
      return 'true or false'
  }
}

export interface DescribedSetting {
  readonly names: readonly string[]
  readonly allowed: string
  readonly standard: string
  readonly description: string
}

/** The reference of settings, as a Markdown table. */
export function settingsTable(title: string, settings: readonly DescribedSetting[]): string {
  const rows = settings.map(({ names, allowed, standard, description }) => {
    return `| ${names.map((name) => `\`${name}\``).join(', ')} | ${allowed} | ${standard} | ${description} |`
  })
  return [`| ${title} | value | default | meaning |`, '|---|---|---|---|', ...rows, ''].join('\n')
}
