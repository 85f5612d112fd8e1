type Fields = Readonly<Record<string, unknown>>

export interface Log {
  debug(message: string, fields?: Fields): void
  info(message: string, fields?: Fields): void
  warn(message: string, fields?: Fields): void
  error(message: string, fields?: Fields): void
}

const LEVELS = ['debug', 'info', 'warn', 'error'] as const

/** On the error stream: standard output belongs to the worker's own program. */
export function stderrLog(format: 'text' | 'json', least: keyof Log): Log {
  const from = LEVELS.indexOf(least)
  const writer = (level: keyof Log) => {
    if (LEVELS.indexOf(level) < from) return () => undefined
    return (message: string, fields: Fields = {}): void => {
      const time = new Date().toISOString()
      process.stderr.write(
        `${format === 'json' ? json(time, level, message, fields) : text(time, level, message, fields)}\n`,
      )
    }
  }
  return { debug: writer('debug'), info: writer('info'), warn: writer('warn'), error: writer('error') }
}

function json(time: string, level: string, message: string, fields: Fields): string {
  return JSON.stringify({ time, level, message, ...fields })
}

function text(time: string, level: string, message: string, fields: Fields): string {
  const { stack, ...short } = fields
  const said = Object.entries(short).map(([name, value]) => ` ${name}=${JSON.stringify(value)}`)
  // A stack is for people: one line for each of its own.
  const lines = typeof stack === 'string' ? `\n${stack.replaceAll(/^/gm, '    ')}` : ''
  return `${time} ${level.toUpperCase().padEnd(5)} ${message}${said.join('')}${lines}`
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
