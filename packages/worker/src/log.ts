type Fields = Readonly<Record<string, unknown>>

export interface Log {
  debug(message: string, fields?: Fields): void
  info(message: string, fields?: Fields): void
  warn(message: string, fields?: Fields): void
  error(message: string, fields?: Fields): void
}

function line(level: string) {
  return (message: string, fields: Fields = {}): void => {
    process.stderr.write(`${JSON.stringify({ time: new Date().toISOString(), level, message, ...fields })}\n`)
  }
}

/** One JSON object per line, on the error stream: standard output belongs to the worker's own program. */
export const stderrLog: Log = {
  debug: () => undefined,
  info: line('info'),
  warn: line('warn'),
  error: line('error'),
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
