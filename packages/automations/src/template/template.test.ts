import { describe, expect, test } from 'vitest'
import { compileTemplate } from './template.ts'

const ROOTS = ['params', 'steps', 'now']
const SCOPE = { now: '2026-01-31T09:00:00Z', params: { x: 10, ok: true, list: [1, 2], none: null }, steps: {} }
const rendered = (value: Parameters<typeof compileTemplate>[0]): unknown => compileTemplate(value, ROOTS).render(SCOPE)

describe('[K-09] templates', () => {
  test('a text that is one expression keeps the type of its value', () => {
    expect(rendered({ n: '${params.x}', b: '${ params.ok }', l: ['${params.list}'], z: '${params.none}' })).toEqual({
      n: 10,
      b: true,
      l: [[1, 2]],
      z: null,
    })
  })

  test('inside a longer text the value is written out', () => {
    expect(rendered('x=${params.x}, l=${params.list}!')).toBe('x=10, l=[1,2]!')
    expect(rendered('due ${now + 24h}')).toBe('due 2026-02-01T09:00:00Z')
  })

  test('braces and quotes inside an expression do not end it', () => {
    expect(rendered('${ {a: params.x} }')).toEqual({ a: 10 })
    expect(rendered("${params.missing || '}'}")).toBe('}')
    expect(rendered('$${params.x}')).toBe('${params.x}')
  })

  test('keys, numbers and what has no expression stay as they are', () => {
    expect(rendered({ '${params.x}': 5, plain: 'cost $5 {x}' })).toEqual({ '${params.x}': 5, plain: 'cost $5 {x}' })
  })

  test('a value that is not there is an error, unless there is a default', () => {
    expect(() => rendered('${params.gone.deeper}')).toThrow(/"\$\{params.gone.deeper\}": there is no such value/)
    expect(rendered("${params.gone || 'x'}")).toBe('x')
  })

  test.each(['${}', '${ }', '${params.x', '${unknown.x}', '${params.}'])(
    '%s is refused when it is compiled',
    (text) => {
      expect(() => compileTemplate(text, ROOTS)).toThrow(/Expression/)
    },
  )

  test('rendered text is not read again', () => {
    const template = compileTemplate('${params.text}', ROOTS)
    expect(template.render({ params: { text: '${params.secret}' } })).toBe('${params.secret}')
  })
})
