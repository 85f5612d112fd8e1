/** What a row can show on a wide page, in this order, and how wide each part is. */
const WIDTHS = {
  status: '9.5rem',
  id: '7.5rem',
  blueprint: 'minmax(0,1.3fr)',
  version: '4rem',
  state: 'minmax(0,0.8fr)',
  doing: 'minmax(0,1.6fr)',
  owner: 'minmax(0,0.7fr)',
  created: '6rem',
  updated: '6rem',
  took: '6.5rem',
} as const

export type Column = keyof typeof WIDTHS
export const COLUMNS = Object.keys(WIDTHS) as readonly Column[]
export const USUAL_COLUMNS: readonly Column[] = ['status', 'blueprint', 'state', 'doing', 'created', 'took']

/** The columns that an address names, or the usual ones; never none. */
export function columnsIn(text: string | undefined): readonly Column[] {
  const named = new Set(text?.split(','))
  const found = COLUMNS.filter((column) => named.has(column))
  return found.length === 0 ? USUAL_COLUMNS : found
}

/** How an address names these columns; nothing for the usual ones. */
export function columnsText(columns: readonly Column[]): string | undefined {
  const ordered = COLUMNS.filter((column) => columns.includes(column))
  const text = ordered.join(',')
  return ordered.length === 0 || text === USUAL_COLUMNS.join(',') ? undefined : text
}

/** For `grid-template-columns`. */
export function gridOf(columns: readonly Column[]): string {
  return columns.map((column) => WIDTHS[column]).join(' ')
}
