/** Signatures that an existing implementation has made: ours must be the same. Kept as text, so that parsing is tested too. */
export const HMAC_VECTORS = String.raw`
{
 "sign": [
  {
   "payload": {
    "worker_id": "w1",
    "timestamp": 1700000000
   },
   "secret": "wt",
   "ignore": null,
   "hex": "a820c8b075869c9437a8125a74754978e26c434123a471279b8a94d8192717a9"
  },
  {
   "payload": {
    "b": null,
    "a": 1.0,
    "c": {
     "z": 1,
     "y": [
      1.5,
      2.0,
      null
     ]
    },
    "security": {
     "signature": "x"
    }
   },
   "secret": "wt",
   "ignore": null,
   "hex": "9e11e59f4dd633b06fbae5a024fdff08c15ba80c2751d3d5ddeff0a4b47c2ce8"
  },
  {
   "payload": {
    "text": "Привет ü   / \" \\",
    "e": 1e-07,
    "big": 123456789.125,
    "neg": -0.0,
    "t": true
   },
   "secret": "секрет",
   "ignore": null,
   "hex": "ce0b62a0a52230eb3d2bbfe8e18b176ed7fe3bcdb4b4e4cc0b9ab5e3f944fe24"
  },
  {
   "payload": {
    "worker_id": "w1",
    "bubbling_chain": [
     "a",
     "b"
    ],
    "payload": {
     "progress": 0.5,
     "message": ""
    },
    "timestamp": 1700000001
   },
   "secret": "tok",
   "ignore": [
    "bubbling_chain"
   ],
   "hex": "4180b2a81417b617a3b106113fb9d49e1c7d1cc28dd727b908d6cb31493ae32a"
  },
  {
   "payload": {
    "Z": 1,
    "a": 2,
    "_": 3,
    "é": 4,
    "A": 5
   },
   "secret": "k",
   "ignore": null,
   "hex": "dbf33edf63abcb33d96c3517b0edec0884323df7f89309cc68eff98c29827d6b"
  }
 ],
 "dict_hash": [
  {
   "obj": {
    "skills": [
     {
      "name": "echo",
      "type": "echo"
     }
    ],
    "capabilities": {},
    "extra": {}
   },
   "sha256": "2e22fbe97b6f9d8c4c0a20aa6cdfa9f1e5eecd128df9cfef112bd1bdc7b8d849"
  }
 ],
 "s3_config_hash": {
  "endpoint": "http://s3:9000",
  "access_key": "ak",
  "bucket": "b",
  "hash": "238160ccb067e396"
 }
}
`
