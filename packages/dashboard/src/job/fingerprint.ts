/** What errors of the same cause have in common: their words, without ids, numbers and quoted values. */
export function fingerprint(message: string): string {
  return message
    .slice(0, 500)
    .replaceAll(/[0-9a-f]{8}-[0-9a-f-]{8,}/gi, '#')
    .replaceAll(/(["'`])(?:(?!\1).){1,200}\1/g, '#')
    .replaceAll(/0x[0-9a-f]+|\d+(?:[.,:]\d+)*/gi, '#')
    .replaceAll(/\s+/g, ' ')
    .trim()
}
