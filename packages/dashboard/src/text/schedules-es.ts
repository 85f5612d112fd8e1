import type { schedulesEn } from './schedules-en.ts'

export const schedulesEs: Readonly<Record<keyof typeof schedulesEn, string>> = {
  'schedule.every': 'Cada {span}',
  'schedule.daily': 'Cada día a las {time}',
  'schedule.weekly': '{days} a las {time}',
  'schedule.monthly': 'Cada mes: {dates}, a las {time}',
  'schedule.date': 'día {n}',
  'schedule.lastDay': 'el último día',
  'schedule.when': 'Cuándo',
  'schedule.zone': 'Zona horaria',
  'schedule.missed': 'Si se pierde una hora',
  'schedule.missed.skip': 'Se omite',
  'schedule.missed.run_once': 'Un trabajo las recupera todas',
  'schedule.missed.catch_up': 'Se recupera cada una',
  'schedule.upcoming': 'Próximas ejecuciones',
  'schedule.off': 'Está desactivado en el archivo de calendarios, por lo que no se inicia nada.',
  'schedule.recent': 'Últimas ejecuciones',
  'schedule.noRecent': 'No se ha ejecutado desde que se activó.',
  'schedule.late': '{span} tarde',
  'schedule.skipped.missed': 'Omitida: ningún servidor funcionaba a esa hora.',
  'schedule.skipped.clock_went_back': 'Omitida: el reloj del servidor iba adelantado y se retrasó.',
}
