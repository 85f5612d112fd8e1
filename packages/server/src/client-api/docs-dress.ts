import { DOCS_LABELS } from './docs-labels.ts'
import { DARK, FONT, LIGHT } from './page-frame.ts'

/** Before the first paint: the theme that was chosen in the dashboard, else that of the system; then the language. */
export const DRESS_SCRIPT = `'use strict'
const root = document.documentElement
const dark = matchMedia('(prefers-color-scheme: dark)')
const dress = () => {
  const chosen = localStorage.getItem('impresario.theme')
  const isDark = chosen === 'dark' || (chosen !== 'light' && dark.matches)
  root.dataset.theme = isDark ? 'dark' : 'light'
}
dark.addEventListener('change', dress)
dress()

const labels = ${JSON.stringify(DOCS_LABELS)}[root.lang]
/** Code and what the server said stay as they are. */
const FOREIGN = 'pre, code, textarea, select, .markdown, .renderedMarkdown, .opblock-tag, .model'
const translate = (top) => {
  const walker = document.createTreeWalker(top, NodeFilter.SHOW_TEXT)
  for (let node = walker.currentNode; node !== null; node = walker.nextNode()) {
    if (node.nodeType !== Node.TEXT_NODE || node.parentElement?.closest(FOREIGN)) continue
    if (Object.hasOwn(labels, node.data)) node.data = labels[node.data]
  }
}
if (labels !== undefined) {
  new MutationObserver((changes) => {
    for (const { type, target, addedNodes } of changes) {
      if (type === 'characterData') translate(target)
      for (const node of addedNodes) translate(node)
    }
  }).observe(root, { subtree: true, childList: true, characterData: true })
}
`

/** The library's page in the colours and fonts of the dashboard. */
const STYLE = `
:root { color-scheme: light; ${LIGHT} }
[data-theme='dark'] { color-scheme: dark; ${DARK} }
body { margin: 0; background: var(--bg); color: var(--ink); font: .875rem/1.5 ${FONT};
  -webkit-font-smoothing: antialiased; }
html { background: var(--bg); }
a { color: var(--accent); }
:focus-visible { outline: 2px solid var(--accent) !important; outline-offset: 2px; }
.top { display: flex; flex-wrap: wrap; align-items: center; gap: .25rem 1.25rem; padding: .75rem 1.25rem;
  background: var(--panel); border-bottom: 1px solid var(--line); }
.top .brand { display: flex; align-items: center; gap: .6rem; margin-right: auto; font-weight: 600; color: var(--ink);
  text-decoration: none; }
@media (max-width: 30rem) { .top .brand { flex-basis: 100%; } }
.lead { max-width: 1420px; margin: 1.25rem auto 0; padding: 0 1.25rem; color: var(--soft); box-sizing: border-box; }
.swagger-ui, .swagger-ui .info .title, .swagger-ui .info p, .swagger-ui .info li, .swagger-ui .info table,
.swagger-ui .opblock-tag, .swagger-ui .opblock .opblock-summary-description, .swagger-ui .opblock-description-wrapper p,
.swagger-ui .opblock-external-docs-wrapper p, .swagger-ui .opblock-title_normal p, .swagger-ui table thead tr td,
.swagger-ui table thead tr th, .swagger-ui .response-col_status, .swagger-ui .response-col_links,
.swagger-ui .parameter__name, .swagger-ui .parameter__type, .swagger-ui .tab li, .swagger-ui .btn, .swagger-ui label,
.swagger-ui .opblock .opblock-section-header h4, .swagger-ui .opblock .opblock-section-header > label,
.swagger-ui section.models h4, .swagger-ui .model-title, .swagger-ui .model, .swagger-ui .responses-inner h4,
.swagger-ui .responses-inner h5, .swagger-ui .dialog-ux .modal-ux-header h3, .swagger-ui .dialog-ux .modal-ux-content p,
.swagger-ui .dialog-ux .modal-ux-content h4, .swagger-ui .auth-container h4, .swagger-ui .json-schema-2020-12__title {
  font-family: ${FONT}; color: var(--ink); }
.swagger-ui .parameter__in, .swagger-ui .opblock .opblock-summary-description, .swagger-ui .response-col_links,
.swagger-ui .parameter__type, .swagger-ui .info .base-url, .swagger-ui .prop-format { color: var(--soft); }
.swagger-ui a.nostyle, .swagger-ui a.nostyle:visited { color: var(--ink); }
.swagger-ui .info a, .swagger-ui .link, .swagger-ui .info .link { color: var(--accent); }
.swagger-ui { background: transparent; }
.swagger-ui .topbar { display: none; }
.swagger-ui .info { margin: 1rem 0 1.5rem; }
.swagger-ui .info .title { font-size: 1.5rem; font-weight: 600; letter-spacing: -.02em; }
.swagger-ui .info .title small { background: #4d5665; }
.swagger-ui .info .title small.version-stamp { background: var(--fill); }
.swagger-ui .scheme-container { background: var(--panel); border: 1px solid var(--line); box-shadow: none; }
.swagger-ui .opblock-tag { border-bottom: 1px solid var(--line); font-size: 1.125rem; font-weight: 600; }
.swagger-ui .opblock, .swagger-ui .opblock.opblock-get, .swagger-ui .opblock.opblock-post,
.swagger-ui .opblock.opblock-put, .swagger-ui .opblock.opblock-patch, .swagger-ui .opblock.opblock-delete {
  background: var(--panel); border: 1px solid var(--line); border-radius: .5rem; box-shadow: none; margin: 0 0 .5rem; }
.swagger-ui .opblock .opblock-summary, .swagger-ui .opblock.is-open .opblock-summary { border-color: var(--line); }
.swagger-ui .opblock .opblock-summary-method { min-width: 4.5rem; padding: .3rem 0; border-radius: .375rem; color: #fff !important;
  font-family: ${FONT}; font-size: .75rem; text-shadow: none; background: #4d5665; }
.swagger-ui .opblock.opblock-get .opblock-summary-method { background: #1c59b5; }
.swagger-ui .opblock.opblock-post .opblock-summary-method { background: #0a6b43; }
.swagger-ui .opblock.opblock-put .opblock-summary-method { background: #85520a; }
.swagger-ui .opblock.opblock-patch .opblock-summary-method { background: #7626b8; }
.swagger-ui .opblock.opblock-delete .opblock-summary-method { background: #b3202c; }
.swagger-ui .opblock .opblock-summary-path, .swagger-ui .opblock .opblock-summary-path__deprecated { color: var(--ink);
  font-size: .875rem; font-weight: 500; word-break: break-word; }
.swagger-ui .opblock .opblock-section-header { background: var(--raise); box-shadow: none; }
.swagger-ui .opblock.opblock-get .tab-header .tab-item.active h4 span::after,
.swagger-ui .opblock.opblock-post .tab-header .tab-item.active h4 span::after,
.swagger-ui .opblock .tab-header .tab-item.active h4 span::after { background: var(--fill); }
.swagger-ui section.models, .swagger-ui section.models.is-open h4 { border-color: var(--line); }
.swagger-ui section.models .model-container, .swagger-ui .json-schema-2020-12 { background: var(--panel); }
.swagger-ui .btn, .swagger-ui .btn.authorize, .swagger-ui .btn.cancel { color: var(--ink); background: var(--panel);
  border: 1px solid var(--edge); border-radius: .375rem; box-shadow: none; }
.swagger-ui .btn.authorize { color: var(--ink) !important; border-color: var(--edge) !important; }
.swagger-ui .btn.authorize span { color: inherit; }
.swagger-ui .btn.authorize svg { fill: var(--ink); }
.swagger-ui .btn.cancel { color: var(--bad); }
.swagger-ui .btn.execute { color: #fff; background: var(--fill); border-color: transparent; }
.swagger-ui input[type=text], .swagger-ui input[type=password], .swagger-ui input[type=search],
.swagger-ui input[type=email], .swagger-ui textarea, .swagger-ui select { color: var(--ink); background: var(--panel);
  border: 1px solid var(--edge); border-radius: .375rem; box-shadow: none; }
.swagger-ui input[disabled], .swagger-ui select[disabled], .swagger-ui textarea[disabled] { color: var(--soft);
  background: var(--raise); }
.swagger-ui .dialog-ux .modal-ux { background: var(--panel); border: 1px solid var(--line); border-radius: .75rem; }
.swagger-ui .dialog-ux .modal-ux-header, .swagger-ui .auth-container { border-color: var(--line); }
.swagger-ui table thead tr td, .swagger-ui table thead tr th { border-color: var(--line); }
.swagger-ui svg, .swagger-ui .btn.authorize svg { fill: var(--soft); }
.swagger-ui .opblock-tag small, .swagger-ui .opblock-tag small p, .swagger-ui select, .swagger-ui input,
.swagger-ui .servers > label, .swagger-ui td, .swagger-ui th, .swagger-ui h2, .swagger-ui h3, .swagger-ui h4,
.swagger-ui h5, .swagger-ui .markdown, .swagger-ui .markdown p, .swagger-ui .renderedMarkdown p,
.swagger-ui .json-schema-2020-12 *, .swagger-ui .model-toggle, .swagger-ui .info .url { font-family: ${FONT}; color: var(--ink); }
.swagger-ui .opblock-tag small { color: var(--soft); }
.swagger-ui .markdown code, .swagger-ui .renderedMarkdown code { color: var(--ink); background: var(--raise);
  font-weight: 500; }
.swagger-ui .parameter__name.required::after, .swagger-ui .parameter__name.required span { color: var(--bad); }
.swagger-ui .json-schema-2020-12 { border: 1px solid var(--line); border-radius: .375rem; }
.swagger-ui .scheme-container { border-width: 1px 0; }
.swagger-ui select { background-image: none; font-weight: 500; }
.swagger-ui .opblock-body, .swagger-ui .model-box { overflow-x: auto; }
.swagger-ui .opblock-body pre.microlight, .swagger-ui .highlight-code pre, .swagger-ui .highlight-code > .microlight {
  background: var(--raise) !important; border: 1px solid var(--line); }
.swagger-ui .highlight-code span, .swagger-ui .microlight, .swagger-ui .microlight span { color: var(--ink) !important; }
@media (max-width: 40rem) {
  .swagger-ui .wrapper, .swagger-ui .scheme-container { padding: 0 .75rem; }
  .swagger-ui .scheme-container { padding: .75rem; }
  .swagger-ui .opblock .opblock-summary { flex-wrap: wrap; }
  .swagger-ui .opblock .opblock-summary-description { flex-basis: 100%; padding: 0 .5rem .25rem; }
}
`

/** The library has a dark theme of its own, with rules that would be stronger than those above. */
export const DRESS_STYLE = STYLE.replaceAll('.swagger-ui', 'html[data-theme] .swagger-ui')
