/* Questions that somebody took out of the inbox without deciding them. The server knows nothing of it: the job waits on. */

/** The newest ones are kept. */
export const IGNORED_MAX = 500

/** A job that asks again asks something new, which nobody has ignored yet. */
export function questionKey(jobId: string, visit: number): string {
  return `${jobId}/${visit}`
}

/** What is stored, newest first. It may be of another version, or written by hand. */
export function readIgnored(text: string | null): readonly string[] {
  try {
    const found: unknown = JSON.parse(text ?? '[]')
    return Array.isArray(found) ? found.filter((key): key is string => typeof key === 'string') : []
  } catch {
    return []
  }
}

export function withIgnored(before: readonly string[], key: string): readonly string[] {
  return [key, ...before.filter((one) => one !== key)].slice(0, IGNORED_MAX)
}
