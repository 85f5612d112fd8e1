/** The data of each event of an event stream, as it comes. Refuses an event that is larger than the bound. */
export async function* eventData(body: ReadableStream<Uint8Array>, bytesMax: number): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let pending = ''
  let data: string[] = []
  for await (const piece of body) {
    pending += decoder.decode(piece, { stream: true })
    if (pending.length + data.reduce((sum, one) => sum + one.length, 0) > bytesMax) {
      throw new Error(`The server sent a message of more than ${bytesMax} bytes.`)
    }
    for (let end = pending.indexOf('\n'); end !== -1; end = pending.indexOf('\n')) {
      const line = pending.slice(0, end).replace(/\r$/, '')
      pending = pending.slice(end + 1)
      if (line === '') {
        const whole = data.join('\n')
        data = []
        if (whole.trim() !== '') yield whole
      } else if (line.startsWith('data:')) {
        data.push(line.slice('data:'.length).replace(/^ /, ''))
      }
    }
  }
}
