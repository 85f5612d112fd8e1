import { vi } from 'vitest'

/** What a program prints. */
export async function printed(program: () => Promise<unknown>): Promise<readonly unknown[]> {
  const log = vi.spyOn(console, 'log').mockReturnValue()
  // Workers tell of themselves on the error stream.
  const errors = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
  try {
    await program()
    return log.mock.calls.map(([first]) => first as unknown)
  } finally {
    log.mockRestore()
    errors.mockRestore()
  }
}
