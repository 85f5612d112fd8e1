import type { schedulesEn } from './schedules-en.ts'

export const schedulesRu: Readonly<Record<keyof typeof schedulesEn, string>> = {
  'schedule.every': 'Каждые {span}',
  'schedule.daily': 'Каждый день в {time}',
  'schedule.weekly': '{days} в {time}',
  'schedule.monthly': 'Каждый месяц: {dates}, в {time}',
  'schedule.date': '{n}-е число',
  'schedule.lastDay': 'последний день',
  'schedule.when': 'Когда',
  'schedule.zone': 'Часовой пояс',
  'schedule.missed': 'Если время пропущено',
  'schedule.missed.skip': 'Запуск пропускается',
  'schedule.missed.run_once': 'Одно задание за все пропущенные',
  'schedule.missed.catch_up': 'Навёрстывается каждый запуск',
  'schedule.upcoming': 'Следующие запуски',
  'schedule.off': 'Расписание выключено в файле, поэтому ничего не запускается.',
  'schedule.recent': 'Последние запуски',
  'schedule.noRecent': 'С момента включения запусков не было.',
  'schedule.late': 'с опозданием {span}',
  'schedule.skipped.missed': 'Пропущен: в это время не работал ни один сервер.',
  'schedule.skipped.clock_went_back': 'Пропущен: часы сервера спешили и были переведены назад.',
}
