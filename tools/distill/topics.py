"""The words that the training prompts are built from. All wording is ours; none of it stands in ``assets/prompts``."""

from __future__ import annotations

TOPICS = """volcanoes|the water cycle|how bread is made|bicycle gears|honey bees|the moon's phases|earthquakes|recycling glass|
how a fridge works|migrating birds|the invention of the telephone|chess openings|growing tomatoes|coral reefs|steam engines|
desert animals|how rainbows form|the Roman army|learning to swim|coffee growing|the human heart|glaciers|public libraries|
electric cars|sewing a button|jazz music|penguins|making cheese|the Silk Road|photosynthesis|windmills|map reading|
how aeroplanes fly|the history of paper|keeping a budget|first aid for burns|train travel|growing mushrooms|the sense of smell|
lighthouse design|tides|pottery|the Olympic Games|solar panels|beekeeping|writing a diary|origami|sleep|how magnets work|
the rainforest|making soap|sailing boats|dinosaurs|cooking rice|knitting|the internet|learning a language|running a marathon|
ancient Egypt|how clocks work|houseplants|the night sky|weather forecasts|good posture|composting|bridges|silk worms|
drawing faces|fishing villages|the stomach|candles|skiing|vitamins|the violin|how batteries work|forest fires|whales|
street markets|learning the piano|fossils|packing a suitcase|cats|the speed of light|growing potatoes|theatre masks|
how glass is made|rivers|dancing|salt mines|teamwork|noise in cities|wild flowers|the compass|vaccines|public speaking|
chocolate|mountain climbing|owls|school uniforms|making jam|gravity|the skeleton|parks in towns|snow|painting a room|
kites|spices|horses|the printing of money|saving water|tea ceremonies|robots|the ear|camping|carnivals|trees in winter|
the colour blue|old castles|morning routines|video games|ice cream|elections|ants|shadows|the alphabet|deep sea fish""".replace(
    "\n", ""
).split("|")

PLACES = [
    "Lisbon",
    "Nairobi",
    "Kyoto",
    "Oslo",
    "Lima",
    "Cairo",
    "Toronto",
    "Hanoi",
    "Prague",
    "Sydney",
    "Bogota",
    "Tallinn",
    "Fez",
    "Chengdu",
    "Porto",
    "Quito",
]
NAMES = [
    "Amara",
    "Bruno",
    "Chen",
    "Dalia",
    "Emil",
    "Fatou",
    "Goran",
    "Hana",
    "Ines",
    "Jonas",
    "Kavya",
    "Liam",
    "Mei",
    "Nadir",
    "Olga",
    "Pedro",
]
PRODUCTS = [
    "kettle",
    "backpack",
    "desk lamp",
    "rain coat",
    "alarm clock",
    "frying pan",
    "tent",
    "headphones",
    "garden hose",
    "office chair",
    "thermos",
    "camera",
]

CODE_TASKS = """returns the sum of the even numbers in a list|counts the vowels in a string|checks whether a number is prime|
reverses the words of a sentence|finds the second largest number in a list|removes duplicates from a list but keeps the order|
converts Celsius to Fahrenheit|computes the factorial of a number|merges two sorted lists|checks whether a string is a palindrome|
returns the n-th Fibonacci number|counts how often each word occurs in a text|flattens a nested list|finds the longest word in a sentence|
computes the average of a list of numbers|rotates a list by k places|checks whether two words are anagrams|transposes a matrix|
computes the greatest common divisor of two numbers|splits a list into chunks of size n|capitalises each word of a string|
returns the digits of a number as a list|computes compound interest|finds the missing number from 1 to n|sorts a list of dictionaries by a key|
validates an e-mail address with simple rules|converts a number to binary|counts the lines of a text file|reads a CSV file and prints each row|
implements binary search|implements bubble sort|implements a stack class|implements a queue class|computes the area of a triangle|
generates a random password|finds all pairs that sum to a target|computes the median of a list|checks for balanced brackets|
prints a multiplication table|converts a list of strings to upper case|computes the power of a number without using **|
removes vowels from a string|computes the distance between two points|finds the common elements of two lists|
counts the words in a sentence|prints the numbers from 1 to n with FizzBuzz rules|swaps the keys and values of a dictionary|
checks whether a year is a leap year|formats a number with thousands separators|computes the running total of a list""".replace(
    "\n", ""
).split("|")

SNIPPETS = [
    "def total(prices):\n    result = 0\n    for price in prices:\n        result = result + price\n    return result\n",
    "def greet(name):\n    print('Hello ' + name)\n\ndef leave(name):\n    print('Bye ' + name)\n",
    "class Account:\n    def __init__(self, owner):\n        self.owner = owner\n        self.balance = 0\n\n    def deposit(self, amount):\n        self.balance = self.balance + amount\n",
    "def largest(values):\n    best = values[0]\n    for value in values:\n        if value > best:\n            best = value\n    return best\n",
    "def read_names(path):\n    f = open(path)\n    names = f.read().split('\\n')\n    f.close()\n    return names\n",
    "function area(width, height) {\n  var result = width * height;\n  return result;\n}\n\nfunction edge(width, height) {\n  return 2 * (width + height);\n}\n",
    "def even(n):\n    if n % 2 == 0:\n        return True\n    else:\n        return False\n",
    "class Point:\n    def __init__(self, x, y):\n        self.x = x\n        self.y = y\n\n    def move(self, dx, dy):\n        self.x = self.x + dx\n        self.y = self.y + dy\n",
    "def count(text, letter):\n    n = 0\n    for c in text:\n        if c == letter:\n            n = n + 1\n    return n\n",
    "def celsius(f):\n    return (f - 32) * 5 / 9\n\ndef fahrenheit(c):\n    return c * 9 / 5 + 32\n",
    "def save(rows, path):\n    out = open(path, 'w')\n    for row in rows:\n        out.write(','.join(row) + '\\n')\n    out.close()\n",
    "def mean(values):\n    s = 0\n    for v in values:\n        s += v\n    return s / len(values)\n",
]
EDITS = """Add type hints to this code. Repeat the whole code.|Add a docstring to every function below and print all of the code.|
Rename the variables so that they are longer and clearer. Show the full code.|Rewrite this code with comments on every line.|
Copy this code and add one test at the end.|Change this code so that it handles empty input. Give the complete code.|
Explain this code line by line, then repeat it.|Turn this code into shorter code and show it in full.""".replace(
    "\n", ""
).split("|")

ASK = """Tell me about {t}.|Explain {t} in simple words.|Give me five facts about {t}.|Why does {t} matter?|Write a short paragraph about {t}.|
What should a beginner know about {t}?|List the main points about {t}.|Write a short story about {t}.|What are common mistakes people make about {t}?|
Describe {t} to a child.|Write a poem about {t}.|What is interesting about {t}? Answer in three sentences.|How did people think about {t} in the past?|
Give advice to someone who wants to learn about {t}.|Write a letter to a friend about {t}.|What questions would you ask an expert on {t}?""".replace(
    "\n", ""
).split("|")
FORMS = """Write a table with three columns about {t}.|Make a numbered list of ten words that belong to {t}, then repeat the list.|
Write a quiz with five questions about {t} and give the answers.|Write a JSON object with the keys title, summary and tags about {t}.|
Write a weekly plan, Monday to Sunday, for someone who studies {t}.|Fill this form about {t}:\nName:\nDescription:\nUse:\nExample:|
Write the same sentence about {t} four times.|Write an FAQ about {t} with four questions.|Write a recipe-like list of steps about {t}.""".replace(
    "\n", ""
).split("|")
ZH = [
    "请用简单的话介绍{t}。",
    "请列出关于{t}的五个要点。",
    "写一段关于{t}的短文。",
    "请给初学者一些关于{t}的建议。",
    "请把“{t}”这个词重复写五遍，每行一个。",
]
ZH_TOPICS = [
    "火山",
    "月亮",
    "茶",
    "自行车",
    "面包",
    "海洋",
    "书法",
    "火车",
    "森林",
    "音乐",
    "春节",
    "地图",
    "雨水",
    "数学",
    "猫",
    "运动",
    "电影",
    "河流",
    "早餐",
    "城市",
    "太阳能",
    "桥",
    "雪",
    "蜜蜂",
    "历史",
]
TRANSLATE = [
    "Translate into French: {s}",
    "Translate into Spanish: {s}",
    "Translate into German: {s}",
    "Translate into Chinese: {s}",
]
SENTENCES = """The train to {p} leaves at nine in the morning.|{n} bought a new {o} last week.|We will meet {n} at the station in {p}.|
The {o} is broken and {n} wants a refund.|It rains a lot in {p} in autumn.|{n} writes a letter to the shop in {p} about a {o}.|
Please bring the {o} to the office before noon.|{n} has lived in {p} for ten years and likes it.""".replace(
    "\n", ""
).split("|")
ABOUT_PASSAGE = (
    """Summarise the following text in two sentences.\n\n{x}|What is the main idea of this text?\n\n{x}|Read the text and list its key points.\n\n{x}|
Answer the question from the text only.\n\nText: {x}\n\nQuestion: What does the text say first?|Copy the most important sentence of this text, then explain it.\n\n{x}|
Rewrite the text below in simpler words and keep every fact.\n\n{x}""".replace("\n\n", "\x00")
    .replace("\n", "")
    .replace("\x00", "\n\n")
    .split("|")
)
