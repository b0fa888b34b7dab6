"""A Live session held by the google-genai package's own client, as standard input says.

    {"client": {...}, "token": "...", "model": "...", "config": {...}, "steps": [["receive"]]}

`client` is what `genai.Client` takes, `config` what `live.connect` takes; with a `token` the client
is one of Vertex AI. Steps are methods of the session by short names. What the package made of each
message is printed, a JSON object a line; an error of its own is printed likewise and ends it.
"""

import asyncio
import base64
import json
import sys

from google import genai
from google.genai import errors, types
from google.oauth2.credentials import Credentials

FRAME_BYTES = 640  # 20 ms


async def hold(asked):
    """Hold the session that is asked for."""
    if "token" in asked:
        asked["client"]["credentials"] = Credentials(asked["token"])
    client = genai.Client(**asked["client"])
    try:
        connecting = client.aio.live.connect(model=asked["model"], config=asked["config"])
        async with connecting as session:
            tell(session_id=session.session_id)
            for name, *values in asked["steps"]:
                await STEPS[name](session, *values)
    except errors.APIError as error:
        tell(error={"code": error.code, "message": str(error)})


async def audio(session, encoded):
    """Send speech in frames, as fast as it goes."""
    pcm = base64.b64decode(encoded)
    for at in range(0, len(pcm), FRAME_BYTES):
        blob = types.Blob(data=pcm[at : at + FRAME_BYTES], mime_type="audio/pcm;rate=16000")
        await session.send_realtime_input(audio=blob)


async def receive(session):
    """Print messages until the package finds that the model's turn is complete."""
    async for message in session.receive():
        tell(**message.model_dump(mode="json", exclude_none=True))


async def receive_audio(session):
    """Print messages up to the first one with audio."""
    async for message in session.receive():
        tell(**message.model_dump(mode="json", exclude_none=True))
        if message.data:
            return


def tell(**fields):
    """Print one line."""
    print(json.dumps(fields), flush=True)


STEPS = {
    "audio": audio,
    "receive": receive,
    "receive_audio": receive_audio,
    "text": lambda session, text: session.send_realtime_input(text=text),
    "activity_start": lambda session: session.send_realtime_input(activity_start={}),
    "activity_end": lambda session: session.send_realtime_input(activity_end={}),
    "audio_stream_end": lambda session: session.send_realtime_input(audio_stream_end=True),
    "content": lambda session, turns, complete: session.send_client_content(
        turns=turns, turn_complete=complete
    ),
    "instructions": lambda session, words: session.send_context_update(system_instruction=words),
}

if __name__ == "__main__":
    asyncio.run(hold(json.load(sys.stdin)))
