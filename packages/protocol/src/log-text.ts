/** Also the marks that turn the direction of writing, and the separators that some viewers take for line ends. */
const CONTROLS = /[\p{Cc}\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]/gu

/** Texts come from outside too: none of them may begin a line of its own in a log, nor steer the terminal. */
export function withoutControls(text: string): string {
  return text.replaceAll(CONTROLS, escapedControl)
}

function escapedControl(char: string): string {
  if (char === '\n') return String.raw`\n`
  if (char === '\t') return String.raw`\t`
  return String.raw`\u` + (char.codePointAt(0) ?? 0).toString(16).padStart(4, '0')
}

/** ISO 8601 in the given zone. The zone's part is worked out once per second: it takes longer than the whole line. */
export function createTimestamp(timeZone: string): (ms: number) => string {
  const parts = new Intl.DateTimeFormat('en-CA', {
    timeZone,
    hourCycle: 'h23',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    timeZoneName: 'longOffset',
  })
  let second = Number.NaN
  let before = ''
  let after = ''
  return (ms) => {
    const now = Math.floor(ms / 1_000)
    if (now !== second) {
      second = now
      const found = new Map(parts.formatToParts(ms).map(({ type, value }) => [type, value]))
      const get = (type: Intl.DateTimeFormatPartTypes): string => found.get(type) ?? ''
      before = `${get('year')}-${get('month')}-${get('day')}T${get('hour')}:${get('minute')}:${get('second')}`
      const offset = get('timeZoneName').replace('GMT', '')
      after = offset === '' || offset === '+00:00' ? 'Z' : offset
    }
    return `${before}.${String(Math.floor(ms) % 1_000).padStart(3, '0')}${after}`
  }
}
