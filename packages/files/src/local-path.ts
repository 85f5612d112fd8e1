/**
 * Where a key lies below the directory of the local store, such as `jobs+/1/report.pdf` for `jobs/1/report.pdf`.
 *
 * Letters, digits, `.`, `_` and `-` stand for themselves, and every other byte is `%` and two digits; so is a dot that
 * would begin a name. Folders end with `+`, so that `a` and `a/b` can both be files. A part that is longer than file systems take goes on in a
 * folder that ends with `~`. Each key has one path, each path one key, and no path leads out of the directory.
 */
export function pathOfKey(key: string): string {
  const parts = key.split('/').map(encodePart)
  const last = parts.pop() ?? ''
  return [...parts.map((part) => `${part}+`), last].join('/')
}

/** Nothing if the path is none of ours. */
export function keyOfPath(path: string): string | undefined {
  const key = path
    .replaceAll('~/', '')
    .split('/')
    .map((part, index, parts) => {
      if (index === parts.length - 1) return decodePart(part)
      return part.endsWith('+') ? decodePart(part.slice(0, -1)) : undefined
    })
  if (key.includes(undefined)) return undefined
  const found = key.join('/')
  return pathOfKey(found) === path ? found : undefined
}

/** File systems take 255 bytes; the marks at the end need one. */
const PART_CHARS_MAX = 200

function encodePart(part: string): string {
  let encoded = ''
  for (const byte of Buffer.from(part)) {
    const char = String.fromCodePoint(byte)
    const isPlain = /[A-Za-z0-9_-]/.test(char) || (char === '.' && encoded.length % PART_CHARS_MAX !== 0)
    encoded += isPlain ? char : `%${byte.toString(16).padStart(2, '0').toUpperCase()}`
  }
  const pieces = encoded.match(new RegExp(`.{1,${PART_CHARS_MAX}}`, 'g')) ?? ['']
  return pieces.join('~/')
}

function decodePart(part: string): string | undefined {
  try {
    return decodeURIComponent(part)
  } catch {
    return undefined
  }
}
