import type { approvalsEn } from './approvals-en.ts'

export const approvalsEs: Readonly<Record<keyof typeof approvalsEn, string>> = {
  'approvals.note': 'Preguntas de trabajos que esperan a una persona.',
  'approvals.none': 'Nadie le espera',
  'approvals.noneNote':
    'Cuando un trabajo pregunta a una persona, la pregunta aparece aquí y se responde con una tecla.',
  'approvals.question': 'Pregunta',
  'approvals.asks': 'Espera una decisión',
  'approvals.expires': 'caduca',
  'approvals.comment': 'Respuesta al trabajo (opcional)',
  'approvals.replyNote': 'El trabajo la recibe con su decisión.',
  'approvals.ignore': 'Ignorar',
  'approvals.restore': 'Volver a la bandeja',
  'approvals.ignoredDone': 'Fuera de su bandeja. El trabajo sigue esperando.',
  'approvals.restored': 'De nuevo en su bandeja.',
  'approvals.ignored': 'Ignoradas',
  'approvals.ignoredNote':
    'Usted las sacó de su bandeja en este navegador. Nada está decidido: los trabajos siguen esperando.',
  'approvals.noneIgnored': 'No ignora nada',
  'approvals.form': 'Lo que se pide',
  'approvals.done': 'Registrado: {decision}.',
}
