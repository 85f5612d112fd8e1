import { createHash } from 'node:crypto'

const STYLE = `
:root { color-scheme: light dark; --ink: #16181d; --soft: #565d6b; --paper: #f4f5f7; --card: #fff; --line: #d5d9e0;
  --accent: #1f5fd0; --on-accent: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #eceef2; --soft: #a5adbb; --paper: #14161a; --card: #1e2127; --line: #3a404b; --accent: #7aa9ff;
    --on-accent: #0d1220; }
}
* { box-sizing: border-box; }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 1rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; }
main { width: 100%; max-width: 34rem; padding: clamp(1.25rem, 5vw, 2.25rem); background: var(--card);
  border: 1px solid var(--line); border-radius: 1rem; overflow-wrap: anywhere; }
h1 { margin: 0 0 1rem; font-size: 1.15rem; font-weight: 600; color: var(--soft); }
.message { margin: 0 0 1.5rem; font-size: 1.3rem; line-height: 1.4; white-space: pre-wrap; }
.facts { margin: 1.5rem 0 0; color: var(--soft); font-size: .9rem; }
.facts p { margin: .25rem 0; }
a { color: var(--accent); }
.links { margin: 0; padding: 0; list-style: none; }
.links li { margin: .6rem 0; }
.links a { font-weight: 600; }
.links span { display: block; color: var(--soft); font-size: .9rem; }
label { display: block; margin-bottom: .35rem; }
textarea { width: 100%; min-height: 4.5rem; margin-bottom: 1.25rem; padding: .6rem .75rem; font: inherit; color: inherit;
  background: transparent; border: 1px solid var(--line); border-radius: .6rem; resize: vertical; }
.ways { display: flex; flex-wrap: wrap; gap: .75rem; }
button { flex: 1 1 9rem; min-height: 3rem; padding: .6rem 1rem; font: inherit; font-weight: 600; cursor: pointer;
  color: var(--accent); background: transparent; border: 2px solid var(--accent); border-radius: .6rem; }
button:first-child { color: var(--on-accent); background: var(--accent); }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 3px; }
`

const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64')

/** The link is a secret: it must not travel on, stay in a cache, or be framed by another page. */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'x-robots-tag': 'noindex',
  'content-security-policy':
    `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; form-action 'self'; ` +
    "frame-ancestors 'none'; base-uri 'none'",
}

export interface Question {
  readonly jobId: string
  readonly blueprint: string
  readonly message: string
  readonly decisions: readonly string[]
  readonly capability: string
  /** Milliseconds since 1970. */
  readonly expiresAt?: number | undefined
}

/** A question with one button for each way. Only a press of a button decides: those who fetch links ahead do not. */
export function questionPage({ jobId, blueprint, message, decisions, capability, expiresAt }: Question): string {
  const ways = decisions
    .map((name) => `<button name="decision" value="${escaped(name)}">${escaped(words(name))}</button>`)
    .join('\n')
  const until =
    expiresAt === undefined
      ? ''
      : `\n<p>Open until <time datetime="${new Date(expiresAt).toISOString()}">${utc(expiresAt)}</time>.</p>`
  return framed(
    'Your decision',
    `<p class="message">${escaped(message)}</p>
<form method="post">
<input type="hidden" name="capability" value="${escaped(capability)}">
<label for="comment">Comment (optional)</label>
<textarea id="comment" name="comment" maxlength="2000"></textarea>
<div class="ways">
${ways}
</div>
</form>
<div class="facts">
<p>${escaped(blueprint)}, job ${escaped(jobId)}</p>${until}
</div>`,
  )
}

/** What became of it, or why there is nothing to decide. */
export function noticePage(title: string, text: string): string {
  return framed(title, `<p class="message" role="status">${escaped(text)}</p>`)
}

/** A page for people in the one design that all of them share. The content is HTML. */
export function framed(title: string, content: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>${escaped(title)}</h1>
${content}
</main>
</body>
</html>
`
}

/** `send_back` reads as "Send back". */
function words(name: string): string {
  const text = name.replaceAll(/[_-]+/g, ' ').trim()
  return text === '' ? name : text.charAt(0).toUpperCase() + text.slice(1)
}

function utc(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')} UTC`
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, (char) => ENTITIES[char] ?? char)
}
