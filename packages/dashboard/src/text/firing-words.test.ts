import { expect, test } from 'vitest'
import { en } from './en.ts'
import { es } from './es.ts'
import { firingWords } from './firing-words.ts'
import { ru } from './ru.ts'
import { translator } from './translate.ts'

/** As `preview.ts` of the package `recurrence` writes them; its tests hold these sentences. */
const SAID = [
  'In the calendar "holidays": Labour Day: spring.',
  'In the calendar "holidays".',
  'Outside of the calendar "office hours".',
  'Left out by an EXDATE of the rule.',
  '02:30 does not exist on that day: the clock goes from 02:00 to 03:00.',
  '01:30 comes twice on that day; this is the first.',
  '01:30 comes twice on that day; this is the second.',
]

test('[M-07] why a firing is left out or moved is said in the language of the page', () => {
  expect(SAID.map((said) => firingWords(translator('en', en), said))).toEqual(SAID)
  expect(SAID.map((said) => firingWords(translator('ru', ru), said))).toEqual([
    'В календаре «holidays»: Labour Day: spring.',
    'В календаре «holidays».',
    'Вне календаря «office hours».',
    'Исключено правилом (EXDATE).',
    'В этот день нет времени 02:30: часы переводят с 02:00 на 03:00.',
    '01:30 в этот день бывает дважды; это первый раз.',
    '01:30 в этот день бывает дважды; это второй раз.',
  ])
  for (const said of SAID) expect(firingWords(translator('es', es), said)).not.toBe(said)
  expect(firingWords(translator('es', es), 'Something new.')).toBe('Something new.')
})
