import type { ProblemKind } from './approval-form.ts'
import type { PageLanguage } from './page-language.ts'

interface PageTexts {
  readonly title: string
  readonly comment: string
  readonly job: string
  readonly openUntil: string
  readonly thanks: string
  /** With `{decision}`. */
  readonly recorded: string
  readonly refused: string
  /** A form was sent that does not fit. */
  readonly incomplete: string
  /** The first line of a choice. */
  readonly choose: string
  /** What is wrong with a field; with `{limit}`. */
  readonly problems: Readonly<Partial<Record<ProblemKind, string>>>
  /** Why nothing can be decided, by the code of the refusal. Where a code has no text, the page shows the message. */
  readonly reasons: Readonly<Record<string, string>>
  /** What a button does, by the decision that it makes. */
  readonly decisions: Readonly<Record<string, string>>
}

/** The texts of the page on which people decide, without an account and without the dashboard. */
export const PAGE_TEXTS: Readonly<Record<PageLanguage, PageTexts>> = {
  en: {
    title: 'Your decision',
    comment: 'Comment (optional)',
    job: 'job',
    openUntil: 'Open until',
    thanks: 'Thank you',
    recorded: 'Your decision is recorded: {decision}.',
    refused: 'This cannot be decided here',
    incomplete: 'Please correct what is marked. Nothing is decided yet.',
    choose: 'Choose …',
    problems: {
      needed: 'This is needed.',
      number: 'Write a number.',
      integer: 'Write a whole number.',
      text: 'Write a text.',
      choice: 'Choose one of: {limit}.',
      least: 'At least {limit}.',
      most: 'At most {limit}.',
      longer: 'At least {limit} characters.',
      shorter: 'At most {limit} characters.',
      format: 'This does not have the right form ({limit}).',
      unknown: 'This is not asked for.',
    },
    reasons: {},
    decisions: {
      approved: 'Approve',
      rejected: 'Reject',
      accepted: 'Accept',
      declined: 'Decline',
      send_back: 'Send back',
      expired: 'Let expire',
      ignored: 'Ignore',
    },
  },
  ru: {
    title: 'Ваше решение',
    comment: 'Комментарий (необязательно)',
    job: 'задание',
    openUntil: 'Ответить можно до',
    thanks: 'Спасибо',
    recorded: 'Ваше решение записано: {decision}.',
    refused: 'Здесь нечего решать',
    incomplete: 'Исправьте отмеченное. Решение ещё не записано.',
    choose: 'Выберите …',
    problems: {
      needed: 'Это нужно заполнить.',
      number: 'Введите число.',
      integer: 'Введите целое число.',
      text: 'Введите текст.',
      choice: 'Выберите одно из: {limit}.',
      least: 'Не меньше {limit}.',
      most: 'Не больше {limit}.',
      longer: 'Не меньше {limit} символов.',
      shorter: 'Не больше {limit} символов.',
      format: 'Неверный вид ({limit}).',
      unknown: 'Об этом не спрашивали.',
    },
    reasons: {
      UNAUTHENTICATED:
        'Ссылка недействительна или устарела. Проверьте, что она скопирована целиком, или запросите новую.',
      FORBIDDEN: 'Эта ссылка даёт право только на одно решение, и не на это.',
      JOB_NOT_FOUND: 'Такого задания нет.',
      NOT_WAITING: 'Задание уже не ждёт решения.',
      STALE_DECISION: 'Задание уже продолжилось: этот вопрос закрыт.',
    },
    decisions: {
      approved: 'Одобрить',
      rejected: 'Отклонить',
      accepted: 'Принять',
      declined: 'Отказать',
      send_back: 'Вернуть',
      expired: 'Закрыть по сроку',
      ignored: 'Пропустить',
    },
  },
  es: {
    title: 'Su decisión',
    comment: 'Comentario (opcional)',
    job: 'trabajo',
    openUntil: 'Abierta hasta',
    thanks: 'Gracias',
    recorded: 'Su decisión queda registrada: {decision}.',
    refused: 'Aquí no se puede decidir',
    incomplete: 'Corrija lo marcado. Aún no se ha decidido nada.',
    choose: 'Elija …',
    problems: {
      needed: 'Es necesario.',
      number: 'Escriba un número.',
      integer: 'Escriba un número entero.',
      text: 'Escriba un texto.',
      choice: 'Elija uno de: {limit}.',
      least: 'Como mínimo {limit}.',
      most: 'Como máximo {limit}.',
      longer: 'Como mínimo {limit} caracteres.',
      shorter: 'Como máximo {limit} caracteres.',
      format: 'No tiene la forma correcta ({limit}).',
      unknown: 'No se pide.',
    },
    reasons: {
      UNAUTHENTICATED:
        'El enlace no es válido o ha caducado. Compruebe que está copiado por completo o solicite uno nuevo.',
      FORBIDDEN: 'Este enlace permite una sola decisión, y no es esta.',
      JOB_NOT_FOUND: 'Este trabajo no existe.',
      NOT_WAITING: 'El trabajo ya no espera una decisión.',
      STALE_DECISION: 'El trabajo ya ha continuado: esta pregunta está cerrada.',
    },
    decisions: {
      approved: 'Aprobar',
      rejected: 'Rechazar',
      accepted: 'Aceptar',
      declined: 'Declinar',
      send_back: 'Devolver',
      expired: 'Dejar caducar',
      ignored: 'Ignorar',
    },
  },
}

/** What a button says: `approved` is the outcome, Approve is the action. Other names are shown as words. */
export function decisionWords(language: PageLanguage, name: string): string {
  const { decisions } = PAGE_TEXTS[language]
  if (Object.hasOwn(decisions, name)) return decisions[name] ?? name
  const text = name.replaceAll(/[_-]+/g, ' ').trim()
  return text === '' ? name : text.charAt(0).toUpperCase() + text.slice(1)
}
