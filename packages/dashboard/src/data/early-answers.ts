/** Answers that were asked for before the application was there, by their addresses. */
export interface EarlyWindow {
  impresarioEarly?: Map<string, Promise<Response | undefined>> | undefined
}

/** The boundary at which the window has what `early.ts` left there. */
const page = globalThis as EarlyWindow

/** An answer that is on its way already. Each serves once, and only if it was not refused. */
export async function takeEarly(url: URL): Promise<Response | undefined> {
  const answer = page.impresarioEarly?.get(url.href)
  if (answer === undefined) return undefined
  page.impresarioEarly?.delete(url.href)
  const response = await answer
  return response?.ok === true ? response : undefined
}

/** What was asked for before is old, or was for somebody else. */
export function forgetEarly(): void {
  page.impresarioEarly = undefined
}
