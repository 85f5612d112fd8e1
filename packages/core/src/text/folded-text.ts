/**
 * The text as `search` compares it: both sides go through this, so that memory and disk cannot disagree about letters.
 * By way of capitals, so that `ß` meets `SS`; all forms of sigma are one; what is no character is replaced as the disk does.
 */
export function foldedText(text: string): string {
  // Most texts are plain, and it is asked for with every step of a job.
  if (PLAIN.test(text)) return text.toLowerCase()
  return text
    .normalize('NFC')
    .toUpperCase()
    .toLowerCase()
    .replaceAll('ς', 'σ')
    .replaceAll(/\p{Surrogate}/gu, '\uFFFD')
}

// oxlint-disable-next-line no-control-regex -- they are plain too
const PLAIN = /^[\u0000-\u007F]*$/
