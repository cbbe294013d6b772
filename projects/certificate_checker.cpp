#include "projects/certificate.h"

namespace tenon::projects {

const char* certificate_checker() {
  return R"PY(#!/usr/bin/env python3
"""Checks a model file, .onnx or .pt2, against its certificate, without Tenon.

    check_certificate.py MODEL [--certificate FILE] [--key FILE]

The bytes and the certificate's own digest need Python alone; the canaries need numpy and onnxruntime, of a .pt2 numpy
and PyTorch 2.9 or later. The exit status is 0 where everything fits, 1 where something does not, 2 where it cannot be
checked.
"""
import argparse, base64, hashlib, hmac, json, os, sys, zipfile


def tree_sha256(path, piece_bytes):
    digests = b""
    with open(path, "rb") as f:
        while True:
            piece = f.read(piece_bytes)
            if not piece and digests:
                break
            digests += hashlib.sha256(piece).digest()
            if len(piece) < piece_bytes:
                break
    return hashlib.sha256(digests).hexdigest()


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("model")
    args.add_argument("--certificate")
    args.add_argument("--key")
    args = args.parse_args()
    path = args.certificate or args.model + ".certificate"
    with open(path, "rb") as f:
        lines = f.read().decode().split("\n")
    body = lines[0].encode()
    fine = True

    def say(what, ok, text):
        nonlocal fine
        fine = fine and ok
        print(("ok      " if ok else "FAILED  ") + what + ": " + text)

    say("certificate", lines[1] == "sha256 " + hashlib.sha256(body).hexdigest(), "its own digest")
    if args.key:
        key = open(args.key, "rb").read()
        want = "hmac-sha256 " + hmac.new(key, body, hashlib.sha256).hexdigest()
        say("signature", len(lines) > 2 and hmac.compare_digest(lines[2], want), "made with this key")
    certificate = json.loads(body)
    for i, file in enumerate(certificate["files"]):
        at = args.model if i == 0 else args.model + ".data"
        if not os.path.exists(at):
            say("bytes", False, at + " is missing")
            continue
        same = (os.path.getsize(at) == file["bytes"]
                and tree_sha256(at, certificate["piece_bytes"]) == file["tree_sha256"])
        say("bytes", same, at)
    try:
        import numpy
        if zipfile.is_zipfile(args.model):
            import torch
        else:
            import onnxruntime
    except ImportError as e:
        print("        canaries: not run, %s is not installed" % e.name)
        return 0 if fine else 1
    canaries = certificate["canaries"]

    def tensor(j):
        types = {"f32": "<f4", "f64": "<f8", "f16": "<f2", "i64": "<i8", "i32": "<i4", "u8": "u1", "i8": "i1"}
        return numpy.frombuffer(base64.b64decode(j["base64"]), types[j["dtype"]]).reshape(j["size"])

    given = tensor(canaries["input"])
    if zipfile.is_zipfile(args.model):
        got = torch.export.load(args.model).module()(torch.from_numpy(given.copy()))
        got = (got if torch.is_tensor(got) else got[0]).detach().numpy()
    else:
        session = onnxruntime.InferenceSession(args.model, providers=["CPUExecutionProvider"])
        got = session.run(None, {session.get_inputs()[0].name: given})[0]
    want = tensor(canaries["output"])
    worst = float(abs(got.astype("f8") - want.astype("f8")).max() / max(abs(want.astype("f8")).max(), 1e-300))
    say("canaries", worst <= canaries["tolerance"], "%d samples, %.3g relative at most" % (len(want), worst))
    return 0 if fine else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Exception as e:
        print(type(e).__name__ + ":", e, file=sys.stderr)
        sys.exit(2)
)PY";
}

}  // namespace tenon::projects
