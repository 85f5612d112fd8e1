/** A picture of four printed lines, two Russian and two English; drawn for these tests (PNG, one bit, 696 × 180). */
const SCAN = [
  'iVBORw0KGgoAAAANSUhEUgAAArgAAAC0AQAAAABX5mLQAAAJaklEQVRo3u3aMY/byBUH8FEYWI1hGkhzRgTNdWl9SLMBBE26K/0VErhwEwRrXC',
  'MDgoYLFboDjGN9jfVNLlRkHB3AsNoUAY4KF2ZL3hYZwRO+/N9Q0kprS6YcK4gTsdDeivRvdcOZx/+jKOg4mzi5J/fkntyTe3JP7sn9P3Cjxqfl',
  'TovjuPGn516QkBEFysirIVGgX/nUKHVshCVDVvi5mpcyl1lhKCCVZoaEquGWQgspVOAnzZ9wEoV60bRi0418uJEPF4fCzctarv1MqfK2HPuTYX',
  '5O1JaTqTkbwDXOpXDYTKwcjuDaloKb2G4tdwBXyXEcp7nVROEUH6y74YYx3DBlV0vnDuq4hqSyOhzHYVE4Ny4KdhcrV6aXdizZ5UPT7PnhbqnY',
  'NQXdcHtjeeXcMdyXh7l+5UZ+bHKx7b5+MhYeu4I/79N647t0AxkWV3CFP2NXNDGcYuV+sXbxs1VnPozWru/cUoYzjENZub3KzX49luTGgditM3',
  '/D9TiM3DiUyo0v5i9ce7Z0vbWr0tcd+vYQN37bLVfuaNPtU/sQN3XzjN1i5dJn73Ava7nyxroolY91Qd/rOF193jCGG75x6+JHlSa2fP98sHK9',
  'jkduHZctH+u4g3k2XY3vsJnReDhlty3ZrTF/jRADFBNa1h28Ix688Eqev0J0qvmAkkPjxEuEUDx/5zVdfUFYDRTIqk5ezFAnuZ6x6+ZvruDmPr',
  'sB6llqTfl+F2fo+o0r9zqrfpFv/+v93Ml927W73Q/f3spRx3I/0nZyT+5/ys0/MTfRn5b7+kjuDyprunhvEdtL4VUXuURH+AWXM8ReYxs4MpcB',
  'Dm8srMYFVnJCyyVnu0Yp59SgSAdSxjND3tq99Fy8t7gwD4RXNQOBdK5QcHPeoyMfrhULAzfy2Y38FEFGwLWC+FLNrhVLN5TJ3MV72x90lKGqGb',
  'iFUIn00eaYnliDPcMRLh+ms8g5p4w4mQxHRZGiY/An/NKVzjX39cqdV/He9jVJQ1UzwKGyVAoGuxDxB9ilxZzCGaXshqkpYvx1uPgVicm5duki',
  '4Ffx3lrnLkNafO0+d65kt6DFtHKRTGRqH4foGB78pSg7eum6xO/yWZjaHsf7a5dD5Yb7snKvKnd07V6VX0h0DF9+U9AOV1SfN7jpoifg2I9zhZ',
  'xeuT7c3GMX79yVSPaPvssFXCnDDRdCxi4mmB0I515du+gJEc9xzsXKNU24kWcrF72o6D68xy561qAZibUrmnA53hvbVzfcrgwT52KPpGt3lLIr',
  'yf7WR1L+6jcFYQwxNbddHl+sC7j6xjh0VUiI/dZ29Np9CDdcuiZBd12eV24saWMcrJq+z+3bcsMtNt15Crf3xLnhtqvTtIr31+5ynlnt3Mu+pd',
  'baxbqQaxfrYpdrdDqv4n2BBbe1Ltj1ieN52RnI8E21Lgy7U07A4RusY3QMvSd44ZlIG+vCUIF13HYxvH8mN9dxTt1W5drOmRxOq3WMszsbeTl+',
  'GU5TdDLoGBZ48buqcu+v3UuUK7iBaIuxoaoZCOTMzEmJB8SxH3UHfQAo1J3yTM+iX0TCp8SL+Y4EXK5QS3dVd3LKuU5qdqUHd1UnZyYldYGlhQ',
  'UjyEMfwCPXgEuz5Ct2czSoFrVVLwBFODm0WSeJsqoYhzgRbruqUbljHL6/rp/cG+56q+Pu347rfvzt5J7cve5mr1y7y363m8vjuFGz+m9b07U1',
  '3eHwOK4/P4pbyvw4ruKUGuhXd71cZnd6FJbKjyOV+QGdKYMsOmgg5tNZv7mY4LKH42q5VpseSaFe3PUi/5JdUv4skJd3hP5cJghZfcHX2M/PvY',
  'XAZfpFbRcpSrZl9Dfk+uSPfT0m6Yehn/yhpTx/MkTI6pkzTd7v5vhxy8dxB7gUTi1y/bzkq3XbDymeozfwR3HK4Y3DjY+0NVCSjzvIjS1yPcdw',
  'uE24KUZdxmGR2ifEmUvGhruIOP4A9wou+pFnj6Rzx5XbQ9pj1xpqH+pG/szynXPnfvsI5yvjW/+Vq3I0ayoSzp0d5IqVq9uanj5Eor92+97SXR',
  'zsov3D8ZLgtpzrxxlnYudqwd+kqZgOdDF/22rtPtX08iclN9186R40DlhvW+7XRM9vuPbxh7gS8XzbjfINt9hweZ7VdVHP7KCNpWt1+AbuhF0t',
  'Rxn3BnGMRM4n4E/oP0q3Lmac8+u4wwt71m6xO5xW7tzoO2jq0BvEaAqS89x0MB+S3K3j2m7ULBtSPJiVXsLzbO7c4FcZ9wZx0jQ/P2/wzQZlxE',
  'KgncVx9dzcJ09ezGbk5T7c1LlRlnFvEBtpb/c9Pk5Zz9XJGdV0abT1Vrr76EWNM7bhTrfeynYffaC7/Qnjj+Zuf9892n30ge7WZv0jufI47sfZ',
  'Tu7JfZdbDrT7uXktGFfvuB1qo2y856vNleu+wj+K69dwVbZ+s67b9W7G6c1tedX5AFdNjuQWR3JzapQD5PREvWpRgMsaPxl0b/pMpca3t7UdyL',
  'AjsiZ5Vn8rdHlL8YNDw7JBUWybe1xjhXOR8Vv8iBB/V//ingeXr8a6HMhxR1x6VjjX/kzxg0MN9AbBl7m3z+2dDQZ9HTaR8W2r21aIgdFffzmW',
  '6WSaJ7rsSqlU8ntzH8eMyZyrtpz8+b7tIWQk871u2YWLdD61HKmInwwyGqk6LpB2yg6785xvt7JrFXYnhv/eCOF7t2sfO9dlcUQ7PlFhvErr7P',
  'pwU8P3/OEW7MZ8K7erRvF+l7qDQberMnafqZUbhuECaZI6r9SmW167O5uCyj0XzhXNmTWi7SNa+bMFu0GD3Ra72YaL3Xy/E24k9riGXd1eupKf',
  '2HBuDBepkj77YdO9KpVgt89PdOx3H3N9aA0UwcWHdU8GsStDepfbxe7C9gZwd4WYyi22XMtP8KxcHofvLvXWOHSVc9347l1vzn26cvmxB+emS/',
  'ebD3QL535d3nT/zl8GGE0XydIFyPPs2h3tdSeGvodL8h8zrIsf2fUrN/5n4VxSMjPGDhQaZwOXz1vP8rood7tdz3QwHybUHMFttzqqbDk315M5',
  '1jFN88q9P2ixe95tOfdcYR3nu13hl8K5UZN7zpbQhK7AuXkDdce5QcY3+kUYubrzgOdZQwVfmj3zjOsXxndOiYQbaMFPBrFrtGmiTjo3yvhG/0',
  'WYcJ3E7sIOmgp1cnc9+3e2nRn8v9QNj+NyiTqGK+RxXFxhj+Lu+T85uSf35J7ck3ty/wfdfwEK5gDOc4IIDwAAAABJRU5ErkJggg==',
].join('')

export const SCAN_LINES = [
  'Договор аренды помещения',
  'Арендатор оплачивает склад ежемесячно',
  'Quarterly warehouse report',
  'Deliveries arrived without damage',
]

export function scannedPicture(): Buffer {
  return Buffer.from(SCAN, 'base64')
}

/** A PDF with this picture on each page, and no text. PDF keeps pixels as PNG does. */
export function scannedPdf(pages = 1): Buffer {
  const data = pixelsOf(scannedPicture())
  const kids = Array.from({ length: pages }, (_, index) => `${5 + index} 0 R`).join(' ')
  const content = 'q 696 0 0 180 0 0 cm /P Do Q'
  const decode = '/DecodeParms << /Predictor 15 /Colors 1 /BitsPerComponent 1 /Columns 696 >>'
  const picture = `/Type /XObject /Subtype /Image /Width 696 /Height 180 /ColorSpace /DeviceGray /BitsPerComponent 1`
  const parts: (string | Buffer)[][] = [
    ['<< /Type /Catalog /Pages 2 0 R >>'],
    [`<< /Type /Pages /Kids [${kids}] /Count ${pages} >>`],
    [`<< ${picture} /Filter /FlateDecode ${decode} /Length ${data.length} >>\nstream\n`, data, '\nendstream'],
    [`<< /Length ${content.length} >>\nstream\n${content}\nendstream`],
    ...Array.from({ length: pages }, () => [
      '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 696 180] /Contents 4 0 R /Resources << /XObject << /P 3 0 R >> >> >>',
    ]),
  ]
  const pieces: Buffer[] = [Buffer.from('%PDF-1.4\n')]
  const places: number[] = []
  for (const [index, part] of parts.entries()) {
    places.push(Buffer.concat(pieces).length)
    pieces.push(Buffer.from(`${index + 1} 0 obj\n`), ...part.map((one) => Buffer.from(one)), Buffer.from('\nendobj\n'))
  }
  const start = Buffer.concat(pieces).length
  const rows = places.map((place) => `${String(place).padStart(10, '0')} 00000 n \n`).join('')
  const end = `trailer\n<< /Size ${places.length + 1} /Root 1 0 R >>\nstartxref\n${start}\n%%EOF\n`
  return Buffer.concat([...pieces, Buffer.from(`xref\n0 ${places.length + 1}\n0000000000 65535 f \n${rows}${end}`)])
}

/** The packed pixels of a PNG, from all its pieces. */
function pixelsOf(png: Buffer): Buffer {
  const pieces: Buffer[] = []
  for (let at = 8; at < png.length;) {
    const length = png.readUInt32BE(at)
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT') pieces.push(png.subarray(at + 8, at + 8 + length))
    at += length + 12
  }
  return Buffer.concat(pieces)
}
