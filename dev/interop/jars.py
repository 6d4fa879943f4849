"""The readers' jars."""

from pathlib import Path

from dev.jar_list import JarList

JARS = JarList("dev.interop", Path(__file__).with_name("jars.xml"), ("flink", "connect"), "the readers' jars")
