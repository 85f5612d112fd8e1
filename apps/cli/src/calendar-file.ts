/** A fold (a line break, then a space or a tab) with the rest of a character of UTF-8 behind it, byte by byte. */
const FOLD_IN_CHARACTER = /(?:\r\n|\n|\r)[ \t](?=[\u0080-\u00BF])/g

/**
 * The text of an iCalendar file. Its long lines are folded by octets (RFC 5545, 3.1), also in the middle of a character. Such folds
 * are taken out before the bytes are read as UTF-8; all others stay, so that errors name the right line.
 */
export function calendarText(bytes: Buffer): string {
  const octets = bytes.toString('latin1')
  if (octets.search(FOLD_IN_CHARACTER) === -1) return bytes.toString('utf8')
  return Buffer.from(octets.replaceAll(FOLD_IN_CHARACTER, ''), 'latin1').toString('utf8')
}
