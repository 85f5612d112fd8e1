import type { approvalsEn } from './approvals-en.ts'

export const approvalsRu: Readonly<Record<keyof typeof approvalsEn, string>> = {
  'approvals.note': 'Вопросы заданий, которые ждут человека.',
  'approvals.none': 'Вас никто не ждёт',
  'approvals.noneNote': 'Когда задание спрашивает человека, вопрос появится здесь. Ответить можно одной клавишей.',
  'approvals.question': 'Вопрос',
  'approvals.asks': 'Ждёт решения',
  'approvals.expires': 'истекает',
  'approvals.comment': 'Ответ заданию (необязательно)',
  'approvals.replyNote': 'Задание получит его вместе с решением.',
  'approvals.ignore': 'Скрыть',
  'approvals.restore': 'Вернуть во входящие',
  'approvals.ignoredDone': 'Вопрос убран из ваших входящих. Задание ждёт дальше.',
  'approvals.restored': 'Вопрос снова во входящих.',
  'approvals.ignored': 'Скрытые',
  'approvals.ignoredNote': 'Вы убрали их из входящих в этом браузере. Ничего не решено: задания ждут дальше.',
  'approvals.noneIgnored': 'Вы ничего не скрыли',
  'approvals.form': 'Что нужно указать',
  'approvals.done': 'Записано: {decision}.',
}
