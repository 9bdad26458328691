"""Asks a room of the gateway as a chat model of LangChain, once as a whole and once as a stream."""

from langchain_openai import ChatOpenAI

room = ChatOpenAI(model="stepgate", base_url="http://127.0.0.1:8010/v1", api_key="none")
print(room.invoke("What is 17.5 * 240?").content)
for piece in room.stream("What is 2 + 2?"):
    print(piece.content, end="", flush=True)
print()
