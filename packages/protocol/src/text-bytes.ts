/** Bytes of a text as UTF-8. Half of a pair counts three bytes, as it is written. */
export function utf8Bytes(text: string): number {
  let bytes = text.length
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index)
    if (code < 0x80) continue
    if (code < 0x8_00) bytes += 1
    else {
      bytes += 2
      // Both halves of a pair are four bytes together.
      if (isPair(code, text.charCodeAt(index + 1))) index += 1
    }
  }
  return bytes
}

function isPair(first: number, second: number): boolean {
  return first >= 0xd8_00 && first < 0xdc_00 && second >= 0xdc_00 && second < 0xe0_00
}
