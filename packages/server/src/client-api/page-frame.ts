import { createHash } from 'node:crypto'
import type { PageLanguage } from './page-language.ts'

/** The colours of the dashboard (`packages/dashboard/src/style.css`); a test compares the two. */
export const LIGHT = `--bg: #f6f7f9; --panel: #ffffff; --raise: #f1f2f5; --line: #e3e6eb; --edge: #c9ced7; --ink: #14171d;
  --soft: #4d5665; --faint: #626b7a; --accent: #4338ca; --fill: #4f46e5; --tint: #eef0ff; --ok: #0a6b43; --bad: #b3202c;
  --warn: #85520a; --info: #1c59b5; --ask: #7626b8;`
export const DARK = `--bg: #0d0f13; --panel: #13161b; --raise: #1b1f26; --line: #252a33; --edge: #3a414d; --ink: #eceef2;
  --soft: #b0b8c5; --faint: #8f98a7; --accent: #a5b4fc; --fill: #4f46e5; --tint: #1d2040; --ok: #4ade9b; --bad: #ff8b8f;
  --warn: #f2bd5c; --info: #84b6ff; --ask: #d3a4ff;`
export const FONT = "'Inter Variable', 'Inter', ui-sans-serif, system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"

/** The mark of the dashboard. Inside the page, so that a page with a secret link loads nothing. */
export const MARK =
  '<svg viewBox="0 0 32 32" width="28" height="28" aria-hidden="true"><rect width="32" height="32" rx="8" fill="#4f46e5"/>' +
  '<path d="M9 22.5V9.5M9 16h6.5a4.5 4.5 0 0 1 4.5 4.5v0" fill="none" stroke="#fff" stroke-width="2.4" stroke-linecap="round"/>' +
  '<circle cx="9" cy="9" r="2.6" fill="#fff"/><circle cx="9" cy="23" r="2.6" fill="#fff"/>' +
  '<circle cx="22" cy="22" r="3" fill="#a5b4fc"/></svg>'

const STYLE = `
:root { color-scheme: light dark; ${LIGHT} }
@media (prefers-color-scheme: dark) { :root { ${DARK} } }
* { box-sizing: border-box; }
body { margin: 0; min-height: 100vh; min-height: 100dvh; display: grid; align-content: center; justify-items: center;
  gap: 1rem; padding: 1.5rem 1rem; background: var(--bg); color: var(--ink); font: .9375rem/1.5 ${FONT};
  -webkit-font-smoothing: antialiased; }
header { display: flex; align-items: center; gap: .6rem; width: 100%; max-width: 34rem; font-weight: 600;
  letter-spacing: -.01em; }
main { width: 100%; max-width: 34rem; padding: clamp(1.25rem, 5vw, 1.75rem); background: var(--panel);
  border: 1px solid var(--line); border-radius: .75rem; box-shadow: 0 1px 2px rgb(15 20 30 / .05); overflow-wrap: anywhere; }
h1 { margin: 0 0 .75rem; font-size: .8125rem; font-weight: 500; color: var(--soft); }
.message { margin: 0 0 1.5rem; font-size: 1.25rem; font-weight: 600; line-height: 1.4; letter-spacing: -.01em;
  white-space: pre-wrap; }
.message:last-child { margin-bottom: 0; }
.facts { margin: 1.5rem 0 0; padding-top: 1rem; border-top: 1px solid var(--line); color: var(--soft); font-size: .8125rem; }
.facts p { margin: .25rem 0; }
code { font-family: ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace; font-size: .95em; }
a { color: var(--accent); }
.links { margin: 0; padding: 0; list-style: none; }
.links li { margin: .6rem 0; }
.links a { font-weight: 600; }
.links span { display: block; color: var(--soft); font-size: .875rem; }
label { display: block; margin-bottom: .35rem; font-weight: 500; font-size: .875rem; }
textarea { width: 100%; min-height: 5rem; margin-bottom: 1.25rem; padding: .5rem .625rem; font: inherit; color: inherit;
  background: var(--panel); border: 1px solid var(--edge); border-radius: .375rem; resize: vertical; }
input:not([type=checkbox]), select { width: 100%; min-height: 2.5rem; padding: .375rem .625rem; font: inherit; color: inherit;
  background: var(--panel); border: 1px solid var(--edge); border-radius: .375rem; }
.field, fieldset { margin: 0 0 1.25rem; }
.field textarea { margin-bottom: 0; }
.json { font-family: ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace; font-size: .8125rem; }
fieldset { padding: .75rem 1rem 0; border: 1px solid var(--line); border-radius: .5rem; }
legend { padding: 0 .35rem; font-weight: 500; font-size: .875rem; }
fieldset > .tick { padding-bottom: .5rem; }
.tick { display: flex; align-items: center; gap: .5rem; min-height: 1.75rem; }
.tick input { width: 1.1rem; height: 1.1rem; margin: 0; accent-color: var(--fill); }
.note { margin: 0 0 .35rem; color: var(--soft); font-size: .8125rem; }
.wrong { margin: 0 0 .5rem; color: var(--bad); font-size: .875rem; font-weight: 500; }
[aria-invalid]:is(input, select, textarea, fieldset) { border-color: var(--bad); }
.ways { display: flex; flex-wrap: wrap; gap: .625rem; }
button { flex: 1 1 9rem; min-height: 2.75rem; padding: .5rem 1rem; font: inherit; font-weight: 600; cursor: pointer;
  color: var(--ink); background: var(--panel); border: 1px solid var(--edge); border-radius: .375rem; }
button:hover { background: var(--raise); }
button.go { color: #fff; background: var(--fill); border-color: transparent; }
button.stop { color: var(--bad); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
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

/** A page for people in the design of the dashboard, without scripts. The content is HTML. */
export function framed(title: string, content: string, language: PageLanguage = 'en'): string {
  return `<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}</title>
<style>${STYLE}</style>
</head>
<body>
<header>${MARK}<span>Impresario</span></header>
<main>
<h1>${escaped(title)}</h1>
${content}
</main>
</body>
</html>
`
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

export function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, (char) => ENTITIES[char] ?? char)
}
