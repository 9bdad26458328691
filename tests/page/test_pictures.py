"""Pictures that go with a message: what is transparent stays light, and many fit into one message."""

import httpx

from tests.integration.conftest import Serve
from tests.page.journey import choose_room, page_at, picture, send
from tests.support.browser import BROWSER_TEST
from tests.support.script import says, script
from tests.support.scripted_server import ScriptedServer

pytestmark = BROWSER_TEST

ANSWER = "document.querySelector('.answer:last-of-type .prose')?.innerText ?? ''"
DROP_FILES = """
    const data = new DataTransfer();
    for (const blob of blobs) data.items.add(new File([blob], "a picture", { type: blob.type }));
    const drop = new DragEvent("drop", { dataTransfer: data, bubbles: true });
    document.querySelector(".chat .composer").dispatchEvent(drop);
"""
DROP_TRANSPARENT = f"""(async () => {{
    const canvas = Object.assign(document.createElement("canvas"), {{ width: 64, height: 64 }});
    canvas.getContext("2d").fillRect(20, 20, 24, 24);
    const blobs = [await new Promise((done) => canvas.toBlob(done, "image/webp"))];
    {DROP_FILES}
    return blobs[0].type;
}})()"""
DROP_PHOTOGRAPHS = f"""(async () => {{
    const blobs = [];
    for (let at = 0; at < 10; at += 1) {{
        const image = new ImageData(1600, 1200);
        for (let byte = 0; byte < image.data.length; byte += 1)
            image.data[byte] = byte % 4 === 3 ? 255 : Math.random() * 256;
        const canvas = Object.assign(document.createElement("canvas"), {{ width: 1600, height: 1200 }});
        canvas.getContext("2d").putImageData(image, 0, 0);
        blobs.push(await new Promise((done) => canvas.toBlob(done, "image/jpeg", 0.9)));
    }}
    {DROP_FILES}
    return blobs.reduce((sum, blob) => sum + blob.size, 0);
}})()"""
"""Ten of the largest size that is sent, each of which fits into a message."""
CORNER = """(async () => {
    const image = document.querySelector(".attached img");
    await image.decode();
    const canvas = Object.assign(document.createElement("canvas"), { width: 64, height: 64 });
    canvas.getContext("2d").drawImage(image, 0, 0, 64, 64);
    return [...canvas.getContext("2d").getImageData(4, 4, 1, 1).data];
})()"""
COUNT_DECODED = """(() => {
    const real = window.createImageBitmap;
    [window.decoded, window.mostDecoded] = [0, 0];
    window.createImageBitmap = async (file) => {
        window.decoded += 1;
        window.mostDecoded = Math.max(window.mostDecoded, window.decoded);
        const bitmap = await real(file);
        const close = bitmap.close.bind(bitmap);
        bitmap.close = () => {
            window.decoded -= 1;
            close();
        };
        return bitmap;
    };
})()"""
"""How many pictures take the memory that they take when they are decoded."""


async def test_what_is_transparent_becomes_white(devtools: str, serve: Serve) -> None:
    async with serve() as url, page_at(devtools, url) as page:
        await choose_room(page, "chat")
        assert await page.evaluate(DROP_TRANSPARENT) == "image/webp"
        await page.until("document.querySelector('.attached img')")
        red, green, blue, alpha = await page.evaluate(CORNER)
        assert min(red, green, blue, alpha) > 250


async def test_ten_photographs_go_into_one_message(devtools: str, serve: Serve, model_server: ScriptedServer) -> None:
    room = {"id": "eyes", "name": "Eyes", "planning": False, "vision": True}
    async with serve(script(says("Noise."))) as url, page_at(devtools, url) as page:
        async with httpx.AsyncClient(base_url=url, timeout=30) as client:
            assert (await client.post("/v1/rooms", json=room)).status_code == 201
        await page.send("Page.reload")
        await choose_room(page, "eyes")
        await page.evaluate(COUNT_DECODED)
        assert await page.evaluate(DROP_PHOTOGRAPHS) > 5_000_000
        await send(page, "What are these?", "eyes")
        await page.until(f"({ANSWER}).includes('Noise')", 60_000)
        await picture(page, "ten-pictures")
        assert await page.evaluate("document.querySelectorAll('.log .mine img, .log .asked img').length") == 10
        widths = await page.evaluate("[...document.querySelectorAll('.log img')].map((one) => one.naturalWidth)")
        assert min(widths) >= 400
        assert await page.evaluate("[window.decoded, window.mostDecoded]") == [0, 1]
