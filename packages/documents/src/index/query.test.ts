import { expect, test } from 'vitest'
import { termOf } from '../text/stemming.ts'
import { fts5Match } from './fts5-match.ts'
import { parseQuery } from './query.ts'
import { snippetOf } from './snippet.ts'
import { tsqueryMatch } from './tsquery-match.ts'

const t = termOf
const match = (text: string): string => fts5Match(parseQuery(text))
const tsquery = (text: string): string => tsqueryMatch(parseQuery(text))

test('[L-04] words, phrases, exclusion, alternatives, prefixes and fields', () => {
  expect(match('договоры аренды')).toBe(`"${t('договор')}" AND "${t('аренда')}"`)
  expect(match('"договор аренды"')).toBe(`"${t('договор')} ${t('аренда')}"`)
  expect(match('договор -черновик')).toBe(`("${t('договор')}") NOT ("${t('черновик')}")`)
  expect(match('cat OR dog bird')).toBe(`("${t('cat')}" OR "${t('dog')}") AND "${t('bird')}"`)
  expect(match('name:отчет title:plan')).toBe(`name : "${t('отчет')}" AND title : "${t('plan')}"`)
  expect(match('документаци*')).toBe(`("документаци" * OR "${t('документаци')}" *)`)
  expect(match('AB-123')).toBe('("ab-123" OR "ab 123")')
})

const PARADIGMS = [
  'журнал журнала журналу журналом журнале журналы журналов журналам журналами журналах',
  'материал материала материалу материалом материалы материалов материалами',
  'сигнал сигналы сигналов', 'канал каналы каналов каналом', 'экран экрана экраны экранов экраном экране',
  'роман романа романы романов', 'автомобиль автомобиля автомобили автомобилей автомобилями',
  'профиль профили профиля профилей', 'кредит кредита кредиты кредитов кредитом', 'лимит лимиты лимитов',
  'режим режима режимы режимов режимом', 'обмен обмена обмены обменов обменом',
  'договор договора договоры договоров договорами', 'документ документы документов',
] // prettier-ignore

test.for(PARADIGMS)('[L-04] each of these forms finds each other: %s', (line) => {
  const forms = line.split(' ')
  const missing = forms.flatMap((asked) => {
    const accepted = new Set(
      parseQuery(asked)
        .wanted.flat()
        .flatMap(({ anyOf }) => anyOf.flatMap(({ terms }) => terms)),
    )
    return forms.filter((written) => !accepted.has(t(written))).map((written) => `${asked} → ${written}`)
  })
  expect(missing).toEqual([])
})

test('[L-04] words of a phrase may have several stems, a few at most, and all of them are highlighted', () => {
  expect(match('"журнал учёта"')).toBe('("журна учет" OR "журнал учет")')
  expect(match(`"${'журнал '.repeat(30)}"`).split(' OR ')).toHaveLength(16)
  const { terms } = parseQuery('журнал')
  expect(snippetOf('Журналов нет, есть журнал.', terms).highlights).toEqual([
    [0, 8],
    [19, 25],
  ])
})

test('[L-04] the same in the language of PostgreSQL', () => {
  expect(tsquery('договоры аренды')).toBe(`'${t('договор')}' & '${t('аренда')}'`)
  expect(tsquery('"договор аренды"')).toBe(`('${t('договор')}' <-> '${t('аренда')}')`)
  expect(tsquery('договор -черновик')).toBe(`'${t('договор')}' & !('${t('черновик')}')`)
  expect(tsquery('cat OR dog bird')).toBe(`('${t('cat')}' | '${t('dog')}') & '${t('bird')}'`)
  expect(tsquery('name:отчет title:plan')).toBe(`'${t('отчет')}':A & '${t('plan')}':B`)
  expect(tsquery('name:документаци*')).toBe(`('документаци':*A | '${t('документаци')}':*A)`)
  expect(tsquery('AB-123')).toBe("('ab-123' | ('ab' <-> '123'))")
})

test('[L-04] filters by kind, path and date', () => {
  const now = new Date(2_026, 10, 17)
  const query = parseQuery('type:pdf,docx path:"my docs/" date:2024-01..2024-02', now)
  expect(query).toMatchObject({ wanted: [], kinds: ['pdf', 'docx'], paths: ['my docs/'] })
  expect([query.from, query.to]).toEqual([new Date(2_024, 0, 1).getTime(), new Date(2_024, 2, 1).getTime()])
  expect(parseQuery('date:>2024-05-17').from).toBe(new Date(2_024, 4, 18).getTime())
  expect(parseQuery('date:today', now).from).toBe(now.getTime())
})

test('[L-04] a query that makes no sense is refused with a reason, and no query breaks the index', () => {
  expect(() => parseQuery('date:someday')).toThrow('"someday" is no date')
  expect(() => parseQuery('date:2024-02-31')).toThrow('there is no day')
  expect(() => parseQuery('x '.repeat(2_000))).toThrow('longer than')
  for (const odd of [
    '',
    '"',
    '""',
    '-',
    '*',
    'a"b',
    '(',
    ') OR (',
    'NEAR(a b)',
    'name:',
    '{x}:y',
    '^a',
    "'; DROP TABLE",
    'a AND',
    '\u0000',
  ]) {
    expect(() => parseQuery(odd)).not.toThrow()
  }
})

test('[L-04] a snippet is cut from the original around the words, and says where they are', () => {
  const text = `${'Вступление без смысла. '.repeat(100)}Договоры\n  аренды были подписаны. ${'Конец. '.repeat(100)}`
  const { text: snippet, highlights } = snippetOf(text, [t('договор'), t('аренда')])
  expect(snippet).toContain('Договоры аренды были подписаны')
  expect(highlights.map(([start, end]) => snippet.slice(start, end))).toEqual(['Договоры', 'аренды'])
  expect(snippet.length).toBeLessThan(260)
  expect(snippetOf('коротко', [t('нет')])).toEqual({ text: 'коротко', highlights: [] })
})
