import { expect, test } from 'vitest'
import { en } from './en.ts'
import { es } from './es.ts'
import { choiceWords, lackWords, scoreWords, waitWords, workerWords } from './reason-words.ts'
import { ru } from './ru.ts'
import { translator } from './translate.ts'

const inEnglish = { t: translator('en', en), language: 'en' } as const
const inRussian = { t: translator('ru', ru), language: 'ru' } as const
const inSpanish = { t: translator('es', es), language: 'es' } as const

test('[M-07] [D-05] what a job waits for is said in the language of the page', () => {
  const waiting = (code: string, values: object) => ({
    summary: 'In English.',
    reasons: [{ code, values: { ...values } }],
  })
  const branches = waiting('branches', { open: 2, all: 3, names: ['render', 'trailer'] })
  expect(waitWords(inEnglish, branches)).toBe("It waits for 2 of 3 branches: 'render', 'trailer'.")
  expect(waitWords(inRussian, branches)).toBe('Ждёт ветви (2 из 3): «render», «trailer».')
  expect(waitWords(inSpanish, waiting('event', { topic: 'paid', key: null, until: null }))).toBe(
    'Espera el evento «paid».',
  )
  expect(waitWords(inSpanish, waiting('event', { topic: 'paid', key: 'o1', until: 60 }))).toBe(
    'Espera el evento «paid» con la clave «o1».',
  )
  expect(waitWords(inRussian, waiting('sleep', { until: 60, to: 'work' }))).toMatch(
    /^Задание спит до .*1970.*«work»\.$/,
  )
  expect(waitWords(inRussian, waiting('quarantined', { message: null }))).toContain('причина неизвестна')
  expect(waitWords(inRussian, waiting('human', { message: 'Ship {it}?' }))).toBe('Ждёт решения человека: Ship {it}?')
  expect(waitWords(inRussian, { summary: null, reasons: [] })).toBeNull()
})

test('[M-07] [D-05] why nobody takes a task, or who does, is said in the language of the page', () => {
  const said = (code: string, values: object) => ({ summary: 'In English.', reason: { code, values: { ...values } } })
  const obstacles = [
    { reason: 'gpu_vram', needed: 24, count: 2 },
    { reason: 'models', needed: ['a', 'b'], count: 1 },
  ]
  const nobody = said('none_fits', { skill: 'render', skilled: 3, obstacles, is_more: true })
  expect(choiceWords(inEnglish.t, nobody)).toBe(
    "Workers with the skill 'render': 3. None of them fits: 2 without 24 GB of VRAM, 1 without the model 'a', 'b', others lack something else.",
  )
  expect(choiceWords(inRussian.t, nobody)).toContain('без 24 ГБ видеопамяти: 2, без модели «a», «b»: 1')
  const best = { worker: 'a', candidates: 2, strategy: 'default', next: 'b', criterion: 'cost' }
  expect(choiceWords(inSpanish.t, said('best', best))).toBe(
    'Se elige «a» por «default»; candidatos: 2. Cuesta menos que «b».',
  )
})

test('[M-07] [D-05] what keeps a worker from a task is said in the language of the page', () => {
  const mismatches = [
    { reason: 'skill', needed: 'paint' },
    { reason: 'max_cost', needed: 0.0004, has: 0.0005 },
    { reason: 'software', name: 'ffmpeg', needed: '7', has: null },
  ]
  expect(lackWords(inRussian.t, mismatches, ['1', '2', '3'])).toBe(
    'У него нет навыка «paint». Он стоит 0.0005 в секунду; задача допускает 0.0004. Задаче нужна программа ffmpeg (7); у него: нет.',
  )
  expect(lackWords(inSpanish.t, [{ reason: 'status', needed: ['idle'], has: 'draining' }], [''])).toBe(
    `Su estado es ${es['status.draining']}.`,
  )
  const score = { warm: true, cost: 0.0004, reputation: 1, load: 2 }
  expect(scoreWords(inRussian.t, score)).toBe('прогрет · цена 0.0004 · репутация 1 · задач: 2')
  expect(scoreWords(inRussian.t, { ...score, warm: false, cost: null })).toBe('репутация 1 · задач: 2')
  const full = { code: 'full', message: '', values: { load: 2, slots: 2 } } as const
  expect(workerWords(inSpanish, full)).toBe('Está lleno: tiene 2 tareas y 2 plazas.')
  expect(workerWords(inEnglish, { ...full, values: { load: 2, slots: null } })).toContain('no room')
  expect(workerWords(inEnglish, { code: 'silent', message: '', values: { seconds: 60 } })).toBe(
    'It has sent nothing for more than 1 min.',
  )
})

test('[M-07] what only a newer server says stays as it says it', () => {
  const newer = { code: 'moon', values: {} }
  expect(waitWords(inRussian, { summary: 'The moon.', reasons: [newer] })).toBe('The moon.')
  expect(choiceWords(inRussian.t, { summary: 'The moon.', reason: newer })).toBe('The moon.')
  const own = { code: 'best', values: { worker: 'a', candidates: 2, strategy: 'own', next: 'b', criterion: 'own' } }
  expect(choiceWords(inRussian.t, { summary: 'By its own.', reason: own })).toBe('By its own.')
  expect(lackWords(inRussian.t, [{ reason: 'moon', needed: 1 }], ['It lacks the moon.'])).toBe('It lacks the moon.')
  expect(lackWords(inRussian.t, undefined, ['It lacks it.'])).toBe('It lacks it.')
})
