/** Words with endings, so that stemming has something to do, in an order that is the same in every run. */
const RUSSIAN =
  'договор аренда помещение отчет квартал документ система обработка файл поиск приложение заказчик исполнитель работа срок оплата акт приемка сторона обязательство ответственность условие порядок расторжение уведомление претензия качество товар поставка'.split(
    ' ',
  )
const ENGLISH =
  'report quarter system document processing search index customer payment schedule contract liability agreement delivery product quality notice term condition party obligation'.split(
    ' ',
  )
const RUSSIAN_ENDINGS = ['', 'а', 'у', 'ом', 'ы', 'ов', 'ам', 'ами', 'ах']
const ENGLISH_ENDINGS = ['', 's', 'ed', 'ing']

export class Prose {
  #state: number

  constructor(seed: number) {
    this.#state = seed
  }

  /** From 0 up to `bound`. */
  below(bound: number): number {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((this.#state / 4_294_967_296) * bound)
  }

  /** A document of so many words. One word in four is rare, as in real texts: one of 20,000. */
  document(words: number): string {
    const [stems, endings] = this.below(2) === 0 ? [RUSSIAN, RUSSIAN_ENDINGS] : [ENGLISH, ENGLISH_ENDINGS]
    return Array.from({ length: words }, () => {
      if (this.below(4) === 0) return `слово${this.below(20_000)}`
      // Squared: the first words of the list are frequent, the last ones are not.
      const stem = stems[Math.floor((this.below(1_000) / 1_000) ** 2 * stems.length)] ?? ''
      return `${stem}${endings[this.below(endings.length)] ?? ''}`
    }).join(' ')
  }

  /** What somebody may look for: one to three words. */
  query(): string {
    return Array.from({ length: 1 + this.below(3) }, () =>
      this.below(3) === 0 ? `слово${this.below(20_000)}` : (RUSSIAN[this.below(RUSSIAN.length)] ?? ''),
    ).join(' ')
  }
}
