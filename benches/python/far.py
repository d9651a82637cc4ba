"""A link of 50 ms to a server on this machine: everything arrives 25 ms late in each direction.

Prints its port, and serves until the end of standard input. Usage: far.py PORT
"""

from __future__ import annotations

import asyncio
import sys

ONE_WAY = 0.025
"""Seconds."""


async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, late: float) -> None:
    """Pass bytes on, each `late` seconds after its arrival, whatever came before it."""
    loop = asyncio.get_running_loop()
    pieces: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(maxsize=1024)

    async def deliver() -> None:
        while True:
            due, piece = await pieces.get()
            await asyncio.sleep(due - loop.time())
            if not piece:
                writer.close()
                return
            writer.write(piece)
            await writer.drain()

    delivering = asyncio.create_task(deliver())
    piece = b"-"
    while piece:
        try:
            piece = await reader.read(1 << 20)
        except ConnectionError:
            piece = b""
        await pieces.put((loop.time() + late, piece))
    await delivering


async def connect(near: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> None:
    """A connection through the link."""
    far, to_far = await asyncio.open_connection("127.0.0.1", port)
    await asyncio.sleep(2 * ONE_WAY)  # The handshake.
    both = (carry(near, to_far, ONE_WAY), carry(far, writer, ONE_WAY))
    await asyncio.gather(*both, return_exceptions=True)


async def main() -> None:
    port = int(sys.argv[1])
    link = await asyncio.start_server(
        lambda near, writer: connect(near, writer, port), "127.0.0.1", 0, limit=4 << 20
    )
    print(link.sockets[0].getsockname()[1], flush=True)
    async with link:
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
