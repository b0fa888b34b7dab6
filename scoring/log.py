"""The raw log of one attempt: its rows, as they lie in `events/<cell>/<file>.jsonl`.

Rows are plain dictionaries so that anyone can read them; this page says what is in them.

The first row is the header, `kind = "start"`:

    t_ns             the moment that sample 0 of the outgoing stream begins to exist
    input_rate       samples a second of the outgoing stream
    output_rate      samples a second of the decoded reply stream
    frame_ms         length of one paced frame
    lead_in_samples  silence before the clip, in samples of the outgoing stream
    clip_samples     length of the clip, likewise
    onset_sample     first voiced sample of the question, as an index into the outgoing stream
    speech_end_sample  one past the last voiced sample, likewise; t0 is the moment it left
    end_kind         "speech", or "audible" for a clip without speech
    latency_kind     as in the contract
    commit_after_ms  wait between the last sample and the commit or the request
    pacing           "real-time" or "fast"
    live             true where a microphone and a loudspeaker took part; absent else
    full_duplex      of a live session: whether output flows all the time

Every other row has `t_ns`, `dir` ("out" or "in"), `kind` and `bytes` (size of the message):

    out  audio          due_ns, samples (paced frames, in order; a last one may be short);
                        burst, true where the next frame was due by then as well; of a microphone
                        taken_ns, when the first sample was at the converter, due_ns is then when
                        the last one was handed to us, and bytes is 0 where frames are gathered
                        for one request
    out  played         sample, samples (a stretch of the reply stream, at output_rate, that the
                        loudspeaker put out without a gap), heard_ns (when its first sample was at
                        the converter); t_ns is when the device told of it
    out  interrupt      heard_ms (the user cut the reply by hand)
    out  commit         due_ns (the message that closes the turn)
    out  request        (the start of a request that carries the whole clip)
    out  message        name (everything else we sent)
    in   ready          input_rate, input_encoding, note
    in   reply_audio    samples (decoded, at output_rate; filled in when the attempt is finished),
                        encoding, rate, reply
    in   reply_text     text, reply
    in   reply_started  reply
    in   reply_ended    reason, reply, detail
    in   speech_started, speech_stopped   audio_ms (what the server believes)
    in   input_transcript  text
    in   note           name, text (what the endpoint told of itself; of binary protocols)
    in   stage          name, began_ms (from the moment the question was handed over), ms: what one
                        stage of a pipeline took; t_ns is the moment at which it ended
    in   interrupted, usage, rate_limit, fault, closed   the fields of the event; the kind of a
                        fault is fault_kind
    in   message        name (a message that led to no event)

Messages of text that carry no reply audio have `data` as well: the text itself, its payloads
replaced by their sizes, cut to 8,192 characters.

One message that leads to several events has one row an event, all with the same `t_ns`; `bytes`
is the message's size on the first of them and 0 on the others. `t_ns` of an outgoing row is taken
when the send has returned, of an incoming row before anything of the message was parsed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
"""One row of the log; outside data, so its values are checked where they are used."""


def dump(rows: Iterable[Row]) -> str:
    """Return rows as JSON lines, each with its line end."""
    return "".join(
        json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows
    )


def load(text: str) -> Sequence[Row]:
    """Return the rows of a log; a torn last line is left out.

    Raises:
        ValueError: If any other line is not a JSON object.
    """
    rows: list[Row] = []
    lines = text.split("\n")
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        try:
            row = json.loads(line)
        except ValueError:
            if number == len(lines):
                break
            raise ValueError(f"line {number} is not JSON: {line[:60]!r}") from None
        if not isinstance(row, dict):
            raise ValueError(f"line {number} is not an object: {line[:60]!r}")  # noqa: TRY004
        rows.append(row)
    return rows
