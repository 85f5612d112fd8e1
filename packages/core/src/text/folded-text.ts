/**
 * The text as `search` compares it: both sides go through this, so that memory and disk cannot disagree about letters.
 * By way of capitals, so that `ß` meets `SS`; all forms of sigma are one; what is no character is replaced as the disk does.
 */
export function foldedText(text: string): string {
  return text
    .normalize('NFC')
    .toUpperCase()
    .toLowerCase()
    .replaceAll('ς', 'σ')
    .replaceAll(/\p{Surrogate}/gu, '\uFFFD')
}
