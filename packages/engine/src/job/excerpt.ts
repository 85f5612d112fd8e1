/** The beginning of a text that others wrote, with a mark where it was cut. */
export function excerpt(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : `${text.slice(0, charsMax - 1)}…`
}
