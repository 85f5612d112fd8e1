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
