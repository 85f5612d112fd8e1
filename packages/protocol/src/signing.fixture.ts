/**
 * Signatures made by an existing implementation: ours must be identical. Kept as text, so that parsing is tested too.
 */
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

/**
 * Signatures in the interpretations of older releases, made with Python's own `json` and `hmac`: numbers as Python
 * writes them or as integers, nulls left out of objects, also out of lists, or kept. The texts are the bodies as they
 * were sent.
 */
export const OLDER_VECTORS = String.raw`
{
 "secret": "the-token",
 "messages": [
  {
   "text": "{\"worker_id\":\"w1\",\"timestamp\":1700000000,\"status\":\"idle\",\"usage\":{\"cpu_load_percent\":8.0,\"ram_used_gb\":0.0,\"devices_usage\":[null,{\"load_percent\":12.0,\"unit_id\":null},2.5,null]},\"metadata\":null,\"big\":9007199254740993,\"neg\":-0.0,\"текст\":\"é \\\"\\\\\"}",
   "signatures": {
    "written_lists": "f3113ea62d2abae83d392d04c2ef6da33a7ef39c8a7ffeafee201ffd231640b0",
    "written_objects": "8e913fb485c7c431476e22a7bcbaa7a36240c5b62e6a8d3d8baca0a484dc828e",
    "written_nulls_stay": "32c72a690d7cad9dddb41a1ca9312111f542c7ab3f9616eef51a2486cfb66111",
    "whole_lists": "7b7a7ce0a31969c92395a7ebcb7262c0baf51a1aa4c281c3eed27e77bc31fd87"
   }
  },
  {
   "text": "{\"worker_id\":\"w1\",\"timestamp\":1700000000,\"status\":\"idle\",\"usage\":{\"cpu_load_percent\":8.0,\"ram_used_gb\":0.0,\"small\":1e-07,\"devices_usage\":[null,{\"load_percent\":12.0,\"unit_id\":null},2.5,null]},\"metadata\":null,\"big\":9007199254740993,\"neg\":-0.0,\"текст\":\"é \\\"\\\\\"}",
   "signatures": {
    "written_lists": "a8bb6253575ef2c916af9af3294b2c53b03e05005f9729d611b71295d87fb754",
    "written_objects": "4518a432cbfa7a1230299dd8ba7c43fb8ee0ee0782cfa32c9df94f4f6bb3272a",
    "written_nulls_stay": "cd44f2efc78686ff030f9717b479abe7322c4fa7ca2699c1ca210d642d83aff5"
   }
  }
 ]
}
`
