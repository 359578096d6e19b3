"""Report to a sweep from inside a trial. Copy this file; it needs the standard library only.

In a program:

    if report(step=epoch, val_loss=loss):  # at any step; True: stop, this trial is hopeless
        sys.exit(0)
    result(val_loss=loss)  # once, at the end
"""

import http.client
import json
import os
import sys
import time
import urllib.error
import urllib.request


def report(step: int, **metrics: float) -> bool:
    """Tell how it goes. Says whether to stop; an answer that does not come means: go on."""
    url = os.environ.get("GPUJOB_REPORT_URL")
    if not url:
        return False
    body = json.dumps({"step": step, "metrics": metrics}).encode()
    for left in (2, 1, 0):
        try:
            try:
                with open(os.environ.get("GPUJOB_TOKEN_FILE", os.devnull)) as file:
                    headers = {
                        "Authorization": f"Bearer {file.read()}"
                    }  # renewed every few minutes
                request = urllib.request.Request(url, body, headers)
                with urllib.request.urlopen(request, timeout=5) as answer:
                    said = json.load(answer)
                    return isinstance(said, dict) and said.get("stop") is True
            except urllib.error.HTTPError as error:
                if error.code == 503 and left:  # the operator changes leaders
                    time.sleep(float(error.headers.get("Retry-After", 1)))
                    continue
                print(f"report: {error.code} {error.read(500)!r}", file=sys.stderr)
        except (OSError, ValueError, http.client.HTTPException) as error:  # also of the above
            print(f"report: {error!r}", file=sys.stderr)
        break
    return False


def result(**metrics: float) -> None:
    """Say what came out. Without a sweep it is printed."""
    line = json.dumps(metrics)
    if path := os.environ.get("GPUJOB_RESULT_FILE"):
        with open(path, "w") as file:
            file.write(line + "\n")
    else:
        print(line)
