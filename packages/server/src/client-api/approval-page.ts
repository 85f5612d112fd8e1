import type { ImpresarioError, JsonObject } from '@impresario/protocol'
import type { FormProblem } from './approval-form.ts'
import { formFields, textOf } from './approval-fields.ts'
import { escaped, framed } from './page-frame.ts'
import type { PageLanguage } from './page-language.ts'
import { decisionWords, PAGE_TEXTS } from './page-texts.ts'

export interface Question {
  readonly jobId: string
  readonly blueprint: string
  readonly message: string
  readonly decisions: readonly string[]
  readonly capability: string
  /** Milliseconds since 1970. */
  readonly expiresAt?: number | undefined
  /** What is asked for beside the decision. */
  readonly form?: JsonObject | undefined
  readonly formFor: readonly string[]
  /** What was sent before, if it did not fit. */
  readonly refused?: Refused | undefined
}

export interface Refused {
  readonly sent: Readonly<Record<string, unknown>>
  readonly problems: readonly FormProblem[]
}

const REFUSAL = /^(?:reject|declin|den|refus|cancel)/i

/** A question with one button for each way. Only a press of a button decides: those who fetch links ahead do not. */
export function questionPage(question: Question, language: PageLanguage): string {
  const { jobId, blueprint, message, decisions, capability, expiresAt, form, formFor, refused } = question
  const texts = PAGE_TEXTS[language]
  const first = decisions.find((name) => !REFUSAL.test(name))
  const ways = decisions
    .map((name) => {
      const look = REFUSAL.test(name) ? ' class="stop"' : name === first ? ' class="go"' : ''
      const check = form === undefined || formFor.includes(name) ? '' : ' formnovalidate'
      return `<button${look}${check} name="decision" value="${escaped(name)}">${escaped(decisionWords(language, name))}</button>`
    })
    .join('\n')
  const until =
    expiresAt === undefined
      ? ''
      : `\n<p>${texts.openUntil} <time datetime="${new Date(expiresAt).toISOString()}">${utc(expiresAt, language)}</time></p>`
  return framed(
    texts.title,
    `<p class="message" dir="auto">${escaped(message)}</p>
<form method="post">
<input type="hidden" name="capability" value="${escaped(capability)}">
${form === undefined || !decisions.some((name) => formFor.includes(name)) ? '' : formFields(form, refused, language)}<label for="comment">${texts.comment}</label>
<textarea id="comment" name="comment" maxlength="2000" dir="auto">${escaped(textOf(refused?.sent['comment']))}</textarea>
<div class="ways">
${ways}
</div>
</form>
<div class="facts">
<p>${escaped(blueprint)}, ${texts.job} <code>${escaped(jobId)}</code></p>${until}
</div>`,
    language,
  )
}

export function recordedPage(decision: string, language: PageLanguage): string {
  const { thanks, recorded } = PAGE_TEXTS[language]
  return noticePage(
    thanks,
    recorded.replace('{decision}', () => decisionWords(language, decision)),
    language,
  )
}

/** Why there is nothing to decide. */
export function refusalPage({ code, message }: ImpresarioError, language: PageLanguage): string {
  const { refused, reasons } = PAGE_TEXTS[language]
  return noticePage(refused, Object.hasOwn(reasons, code) ? (reasons[code] ?? message) : message, language)
}

function noticePage(title: string, text: string, language: PageLanguage): string {
  return framed(title, `<p class="message" role="status">${escaped(text)}</p>`, language)
}

function utc(ms: number, language: PageLanguage): string {
  const format = new Intl.DateTimeFormat(language, { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' })
  return `${format.format(ms)} UTC`
}
