"""The authored tools of the tool-call dialogues, and the words novel tools are made of.

A tool is a block of lines:
    names, "/" between alternatives
    descriptions, "/" between alternatives
    p parameters, ";" between them: name,name:type:description:slot kind ("!" at the end when it is required)
    w what the user wants, for a thought
    u what a user says, "|" between utterances
    r a tool result => the answer it leads to (optional)
    m utterances that lack a required argument => the question to ask (optional)
A line that starts with two spaces continues the one before.
Type is s (string), i (integer) or n (number). {name} stands for the value of a parameter (its first name).
"""

TOOLS = """
get_weather/weather_lookup/current_weather
Get the current weather for a city./Look up the weather in a place.
p city,location,place:s:Name of the city:city!;day,date,when:s:Day of the forecast:weathertime
w the weather in {city}
u what's the weather in {city}|how is the weather in {city}|weather in {city}|is it raining in {city}|
  what is the weather like in {city} {day}|will it rain in {city} {day}|show me the forecast for {city}|
  do I need an umbrella in {city} {day}|tell me the weather in {city}|how cold is it in {city}
r {"temperature": {#n-5-32}, "sky": "{#sky}"} => It is {#n-5-32} degrees and {#sky} in {city}.
m what's the weather like|how is the weather|will it rain|tell me the forecast => Which city do you mean?

get_time/current_time/world_clock
Get the current time in a city./Tell the local time of a place.
p city,location,timezone_city:s:Name of the city:city!
w the time in {city}
u what time is it in {city}|tell me the time in {city}|what is the local time in {city}|current time in {city}|
  what's the time in {city} right now|time in {city} please
r {"time": "{#time}"} => It is {#time} in {city}.

set_timer/start_timer/timer_start
Start a countdown timer./Set a timer for some minutes.
p minutes,duration,duration_minutes:i:Length in minutes:n1-90!;label,name:s:Name of the timer:food
w a timer of {minutes} minutes
u set a timer for {minutes} minutes|start a {minutes} minute timer|timer for {minutes} minutes|
  count down {minutes} minutes|remind me in {minutes} minutes with a timer|give me a {minutes} minute countdown|
  set a {minutes} minute timer for the {label}
r {"status": "started"} => The timer is set for {minutes} minutes.
m set a timer|start a timer|I need a timer => For how many minutes?

set_alarm/create_alarm/alarm_set
Set an alarm./Create an alarm at a given time.
p time,at,alarm_time:s:Time of the alarm:time!;day,date:s:Day of the alarm:date
w an alarm at {time}
u set an alarm for {time}|wake me up at {time}|alarm at {time} {day}|I need an alarm for {time}|
  set my alarm to {time} {day}|wake me at {time} {day}|make an alarm for {time}
r {"status": "ok"} => Your alarm is set for {time}.
m set an alarm|wake me up tomorrow|I need an alarm => At what time?

create_reminder/add_reminder/remind_user
Create a reminder./Remind the user of a task.
p task,text,title:s:What to remember:task!;time,at,when:s:Time of the reminder:time
w a reminder to {task}
u remind me to {task}|remind me to {task} at {time}|set a reminder to {task}|add a reminder to {task} at {time}|
  don't let me forget to {task}|I must remember to {task}, remind me at {time}|create a reminder: {task}
r {"status": "saved"} => I will remind you to {task}.
m set a reminder|remind me at noon|add a reminder => What should I remind you of?

create_event/add_calendar_event/schedule_meeting
Add an event to the calendar./Put an event in the calendar.
p title,event,name:s:Title of the event:event!;date,day:s:Day of the event:date!;time,start_time:s:Start time:time
w {title} in the calendar
u add {title} to my calendar {date}|schedule {title} {date} at {time}|put {title} on my calendar for {date}|
  book {title} {date} at {time}|new event: {title}, {date}|plan {title} for {date} at {time}|
  create an event called {title} {date}
r {"status": "created"} => I added {title} to your calendar.
m add an event tomorrow|put something in my calendar for Friday => What is the event?

list_events/get_calendar/show_agenda
List the events of a day./Show the calendar of a day.
p date,day,when:s:Day to show:date!
w the calendar of {date}
u what do I have {date}|show my calendar for {date}|what is on my agenda {date}|am I free {date}|
  list my events for {date}|do I have meetings {date}|check my schedule {date}
r {"events": ["{#event}"]} => You have one event: {#event}.

create_note/save_note/take_note
Save a note./Write down a note.
p text,content,body:s:Text of the note:note!
w to save a note
u take a note: {text}|note that {text}|write down: {text}|save a note saying {text}|make a note: {text}|
  new note: {text}|jot down {text}
r {"id": {#n1-99}} => I saved the note.
m take a note|make a new note|save a note => What should the note say?

add_todo/create_task/todo_add
Add a task to the to-do list./Create a to-do item.
p task,item,title:s:The task:task!;priority,level:s:How important it is:priority
w {task} on the to-do list
u add {task} to my to-do list|put {task} on my todo list|new task: {task}|add a {priority} priority task: {task}|
  todo: {task}|create a task to {task} with {priority} priority|my list needs {task}
r {"status": "added"} => I added it to your list: {task}.

send_email/email_send/compose_email
Send an email./Write and send an email to a person.
p to,recipient,receiver:s:Who gets the email:person!;subject,title:s:Subject line:subject;
  body,message,text:s:Text of the email:message
w an email to {to}
u send an email to {to} about {subject}|email {to} about {subject}|email {to}: {body}|
  send {to} an email saying {body}|write an email to {to} with the subject {subject}|
  mail {to} about {subject} and say {body}|send an email to {to}
r {"status": "sent"} => The email to {to} is sent.
m send an email|write an email about lunch|send an email about the budget => Who should get the email?

send_message/text_contact/send_sms
Send a text message./Send a message to a contact.
p to,contact,recipient:s:Who gets the message:person!;text,message,body:s:Text of the message:message!
w a message to {to}
u text {to}: {text}|send a message to {to} saying {text}|tell {to} that {text}|message {to}: {text}|
  send {to} a text: {text}|write to {to} that {text}|let {to} know: {text}
r {"status": "delivered"} => I sent your message to {to}.
m send a message to Anna|text Ben|message Clara => What should the message say?

make_call/call_contact/start_call
Call a person on the phone./Start a phone call.
p contact,name,person:s:Who to call:person!
w a call to {contact}
u call {contact}|phone {contact}|ring {contact}|give {contact} a call|dial {contact}|I want to talk to {contact}|
  start a call with {contact}
r {"status": "ringing"} => I am calling {contact}.
m make a call|call someone|start a phone call => Who should I call?

play_music/play_song/music_play
Play a song./Play music by title or artist.
p song,title,track:s:Title of the song:song!;artist,by:s:Name of the artist:artist
w to hear {song}
u play {song}|play {song} by {artist}|put on {song}|I want to hear {song}|start {song} by {artist}|
  play the song {song}|let me listen to {song}
r {"status": "playing"} => Now playing {song}.

play_genre/start_radio_genre/music_by_genre
Play music of a genre./Start a mix of one kind of music.
p genre,style,kind:s:Kind of music:genre!
w {genre} music
u play some {genre}|put on {genre} music|I am in the mood for {genre}|play {genre}|some {genre} music please|
  start a {genre} mix
r {"status": "playing"} => Here is some {genre}.

set_volume/change_volume/volume_set
Set the sound volume./Change the volume of the speaker.
p level,volume,percent:i:Volume from 0 to 100:n0-100!
w the volume at {level}
u set the volume to {level}|volume {level}|turn the sound to {level} percent|change the volume to {level}|
  make the volume {level}|put the speaker at {level} percent
r {"volume": {level}} => The volume is now {level}.
m change the volume|set the volume => To what level, from 0 to 100?

switch_light/control_light/set_light
Turn a light on or off./Switch the lights of a room.
p room,location,area:s:The room:room!;state,power,action:s:On or off:onoff!
w the {room} light {state}
u turn {state} the light in the {room}|switch {state} the {room} light|{room} lights {state}|
  turn the {room} lights {state}|lights {state} in the {room}|switch the light in the {room} {state}
r {"status": "ok"} => The {room} light is {state}.
m turn on the light|switch off the lights|turn off the light => In which room?

set_light_color/change_light_color/color_light
Change the color of a light./Set the light of a room to a color.
p room,location,area:s:The room:room!;color,colour,hue:s:The color:color!
w {color} light in the {room}
u make the {room} light {color}|set the {room} lights to {color}|change the light in the {room} to {color}|
  {color} light in the {room}|turn the {room} {color}|I want {color} light in the {room}
r {"status": "ok"} => The {room} light is now {color}.

set_thermostat/set_temperature/heat_room
Set the temperature at home./Set the thermostat to some degrees.
p temperature,degrees,target:i:Temperature in degrees:n15-28!;room,area:s:The room:room
w {temperature} degrees
u set the thermostat to {temperature}|set the temperature to {temperature} degrees|make it {temperature} degrees|
  heat the {room} to {temperature} degrees|{temperature} degrees in the {room}|turn the heating to {temperature}
r {"target": {temperature}} => The temperature is set to {temperature} degrees.
m change the temperature|set the thermostat => To how many degrees?

lock_door/door_lock/secure_door
Lock a door./Lock one of the doors of the house.
p door,which,name:s:Which door:door!
w the {door} locked
u lock the {door}|please lock my {door}|make sure the {door} is locked|secure the {door}|close and lock the {door}|
  is the {door} open? lock it
r {"locked": true} => The {door} is locked.
m lock the door|lock it => Which door?

calculate/calculator/evaluate_expression
Evaluate an arithmetic expression./Do a calculation.
p expression,expr,formula:s:The expression:expr!
w the value of {expression}
u what is {expression}|calculate {expression}|compute {expression}|{expression} = ?|how much is {expression}|
  work out {expression}|give me {expression}
m do a calculation|calculate something for me => What should I calculate?

convert_units/unit_converter/convert_measure
Convert a value between units./Change a measure from one unit to another.
p value,amount,quantity:n:Number to convert:n2-500!;from_unit,source,from:s:Unit of the value:unit!;
  to_unit,target,to:s:Unit to convert to:unit!
w {value} {from_unit} in {to_unit}
u convert {value} {from_unit} to {to_unit}|how many {to_unit} are {value} {from_unit}|
  {value} {from_unit} in {to_unit}|what is {value} {from_unit} in {to_unit}|change {value} {from_unit} into {to_unit}|
  turn {value} {from_unit} into {to_unit}

convert_currency/exchange_money/currency_converter
Convert money between currencies./Exchange an amount of money.
p amount,value,sum:n:Amount of money:n5-900!;from_currency,source,from:s:Currency of the amount:currency!;
  to_currency,target,to:s:Currency to convert to:currency!
w {amount} {from_currency} in {to_currency}
u convert {amount} {from_currency} to {to_currency}|how much is {amount} {from_currency} in {to_currency}|
  {amount} {from_currency} to {to_currency}|exchange {amount} {from_currency} for {to_currency}|
  what are {amount} {from_currency} worth in {to_currency}|change {amount} {from_currency} into {to_currency}
r {"result": {#n10-990}} => {amount} {from_currency} is about {#n10-990} {to_currency}.

translate_text/translate/translator
Translate text into a language./Translate a phrase.
p text,phrase,sentence:s:Text to translate:phrase!;language,target_language,to:s:Target language:language!
w a translation into {language}
u translate "{text}" to {language}|how do you say "{text}" in {language}|what is "{text}" in {language}|
  translate {text} into {language}|say "{text}" in {language}|I need "{text}" in {language}
m translate "good morning"|translate "thank you" => Into which language?

define_word/dictionary_lookup/get_definition
Look up the meaning of a word./Get the definition of a word.
p word,term,entry:s:The word:word!
w the meaning of {word}
u define {word}|what does {word} mean|what is the meaning of {word}|look up {word} in the dictionary|
  definition of {word}|give me the definition of {word}

web_search/search_web/google_search
Search the web./Find pages about a query.
p query,q,search_term:s:What to search for:topic!
w a web search about {query}
u search the web for {query}|search for {query}|look up {query} online|find information about {query}|google {query}|
  find pages about {query}|look for {query} on the internet
r {"results": ["A guide to {query}"]} => I found a page: A guide to {query}.
m search the web|look something up online => What should I search for?

get_news/news_search/latest_news
Get the latest news on a topic./Find news about something.
p topic,subject,about:s:Topic of the news:topic!
w news about {topic}
u what is the news about {topic}|show me news on {topic}|latest news about {topic}|any news on {topic}|
  read me the news about {topic}|give me headlines about {topic}
r {"headline": "New report on {topic}"} => The top headline is: New report on {topic}.

get_stock_price/stock_quote/share_price
Get the stock price of a company./Look up a share price.
p company,ticker,symbol:s:Name of the company:company!
w the stock price of {company}
u what is the stock price of {company}|how is {company} stock doing|{company} share price|
  get me a quote for {company}|what are {company} shares worth|check the price of {company} stock
r {"price": {#n20-480}} => One share of {company} costs {#n20-480} dollars.
m what is the stock price|check a share price => Of which company?

find_recipe/get_recipe/recipe_search
Find a recipe for a dish./Search recipes.
p dish,food,name:s:The dish:food!
w a recipe for {dish}
u find a recipe for {dish}|how do I make {dish}|I want to cook {dish}|give me a recipe for {dish}|recipe for {dish}|
  show me how to cook {dish}
m find a recipe|I want to cook something => What dish do you want to cook?

find_restaurant/search_restaurants/restaurant_finder
Find restaurants in a city./Search for a place to eat.
p cuisine,food,type:s:Kind of food:cuisine!;city,location,near:s:The city:city!
w {cuisine} food in {city}
u find a {cuisine} restaurant in {city}|where can I eat {cuisine} food in {city}|{cuisine} restaurants in {city}|
  I want {cuisine} food in {city}|good {cuisine} places in {city}|look for {cuisine} food in {city}

book_table/reserve_table/make_reservation
Book a table at a restaurant./Reserve a table.
p people,guests,party_size:i:Number of people:n2-12!;time,at:s:Time of the booking:time!;
  date,day:s:Day of the booking:date
w a table for {people} at {time}
u book a table for {people} at {time}|reserve a table for {people} people at {time} {date}|
  table for {people} at {time}|I need a table for {people} {date} at {time}|get us a table for {people} at {time}|
  make a reservation for {people} at {time}
r {"status": "booked"} => Your table for {people} is booked at {time}.
m book a table at 8 pm|reserve a table at noon => For how many people?

book_taxi/call_taxi/order_ride
Order a taxi./Book a ride to a place.
p destination,to,dropoff:s:Where to go:airport!;time,pickup_time,at:s:Time of the pickup:time
w a taxi to {destination}
u get me a taxi to {destination}|book a cab to {destination} at {time}|I need a ride to {destination}|
  order a taxi to {destination}|call a cab to {destination} for {time}|taxi to {destination} please
r {"minutes": {#n2-19}} => Your taxi comes in {#n2-19} minutes.
m get me a taxi|book a cab|I need a ride => Where do you want to go?
"""

MORE_TOOLS = """
get_route/get_directions/plan_route
Get directions to a place./Plan a route between two cities.
p start,origin,from:s:Where the trip starts:city!;end,destination,to:s:Where the trip ends:city!;
  mode,travel_mode:s:How to travel:mode
w a route from {start} to {end}
u how do I get from {start} to {end}|directions from {start} to {end}|show me the way from {start} to {end}|
  route from {start} to {end} by {mode}|plan a route from {start} to {end}|
  give me {mode} directions from {start} to {end}

search_flights/find_flight/flight_search
Search for flights between cities./Find a flight.
p from_city,origin,departure:s:City of departure:city!;to_city,destination,arrival:s:City of arrival:city!;
  date,day:s:Day of the flight:date
w a flight from {from_city} to {to_city}
u find a flight from {from_city} to {to_city}|flights from {from_city} to {to_city} {date}|
  I want to fly from {from_city} to {to_city}|search flights from {from_city} to {to_city} {date}|
  is there a plane from {from_city} to {to_city}|fly me from {from_city} to {to_city} {date}
r {"price": {#n60-640}} => The cheapest flight costs {#n60-640} dollars.
m find a flight to Rome|I want to fly to Tokyo => Where do you want to leave from?

train_times/find_train/get_train_schedule
Find trains between two cities./Look up train times.
p from_city,origin,start:s:City of departure:city!;to_city,destination,end:s:City of arrival:city!
w trains from {from_city} to {to_city}
u when is the next train from {from_city} to {to_city}|trains from {from_city} to {to_city}|
  train times from {from_city} to {to_city}|I want to take the train from {from_city} to {to_city}|
  find a train from {from_city} to {to_city}|is there a train from {from_city} to {to_city}
r {"departure": "{#time}"} => The next train leaves at {#time}.

book_hotel/find_hotel/hotel_search
Find a hotel in a city./Book a hotel room.
p city,location,place:s:The city:city!;nights,stay,number_of_nights:i:Number of nights:n1-14!
w a hotel in {city} for {nights} nights
u book a hotel in {city} for {nights} nights|find a room in {city} for {nights} nights|
  I need a hotel in {city}, {nights} nights|hotel in {city} for {nights} nights|
  I stay {nights} nights in {city}, find a hotel|get me a room for {nights} nights in {city}
m book a hotel in Paris|find a hotel in Rome => For how many nights?

movie_info/search_movie/get_movie
Get facts about a movie./Look up a film.
p title,movie,film:s:Title of the movie:movie!
w facts about the movie {title}
u tell me about the movie {title}|who made the film {title}|when did the movie {title} come out|
  look up the movie {title}|find the film {title}|is the movie {title} any good

find_book/search_book/library_search
Search for a book./Find a book in the library.
p title,book,name:s:Title of the book:book!;author,writer:s:Name of the author:author
w the book {title}
u find the book {title}|do you have {title} by {author}|look for the book {title}|search the library for {title}|
  is the book {title} in the library|who wrote the book {title}

read_file/open_file/file_read
Read a file./Show the content of a file.
p path,file,filename:s:Path of the file:file!
w the content of {path}
u read {path}|open the file {path}|show me {path}|what is in {path}|print the content of {path}|what does {path} say|
  cat {path}
r {"content": "{#content}"} => The file says: {#content}.
m read a file|open the file => Which file?

write_file/save_file/file_write
Write text to a file./Save text in a file.
p path,file,filename:s:Path of the file:file!;content,text,data:s:Text to write:content!
w to write to {path}
u write "{content}" to {path}|save "{content}" in {path}|put the text "{content}" into {path}|
  create {path} with the text "{content}"|write {content} into the file {path}|store "{content}" in {path}
r {"status": "written"} => I wrote it to {path}.
m write a file called notes.txt|save something in todo.md => What should I write in it?

delete_file/remove_file/file_delete
Delete a file./Remove a file from the disk.
p path,file,filename:s:Path of the file:file!
w {path} deleted
u delete {path}|remove the file {path}|get rid of {path}|erase {path}|please delete the file {path}|throw away {path}
r {"deleted": true} => I deleted {path}.

list_files/list_directory/show_folder
List the files of a folder./Show what is in a folder.
p folder,directory,path:s:The folder:folder!
w the files in {folder}
u list the files in {folder}|what is in the {folder} folder|show the {folder} directory|which files are in {folder}|
  ls {folder}|open the folder {folder}
r ["{#file}"] => There is one file: {#file}.

run_command/shell/execute_shell
Run a shell command./Execute a command in the terminal.
p command,cmd,line:s:The command:command!
w to run {command}
u run {command}|run the command {command}|execute {command}|type {command} in the terminal|
  run `{command}` in the shell|do {command} and show me the output

run_python/python/execute_code
Run Python code./Execute a piece of Python.
p code,source,script:s:The code:code!
w to run Python code
u run this python code: {code}|execute {code}|what does {code} give in python|run {code} in python|
  evaluate this python: {code}|try this code: {code}

query_database/sql_query/count_rows
Query a database table./Get rows from a table.
p table,table_name,source:s:Name of the table:table!;limit,max_rows,count:i:How many rows:n1-50
w rows of the table {table}
u show the rows of {table}|get {limit} rows from {table}|query the table {table}|
  select {limit} rows from the {table} table|read the {table} table|
  give me the first {limit} {table} from the database

fetch_url/open_page/http_get
Fetch a web page./Get the content of a URL.
p url,address,link:s:Address of the page:url!
w the page {url}
u fetch {url}|open {url}|get the page {url}|load {url}|what is on {url}|download the page {url}|visit {url}
m fetch the page|open a web page => What is the address of the page?

random_number/pick_number/generate_random
Pick a random number./Generate a random number in a range.
p min,low,from:i:Smallest number:n1-9!;max,high,to:i:Largest number:n10-999!
w a random number from {min} to {max}
u pick a number between {min} and {max}|random number from {min} to {max}|
  give me a random number between {min} and {max}|choose a number from {min} to {max}|
  generate a number between {min} and {max}|a random number, {min} to {max}

roll_dice/dice_roll/throw_dice
Roll some dice./Throw dice with a number of sides.
p count,dice,number:i:Number of dice:n1-6!;sides,faces:i:Sides of each die:n4-20
w to roll {count} dice
u roll {count} dice|throw {count} dice|roll {count} dice with {sides} sides|I want to roll {count} dice|
  please roll {count} {sides}-sided dice|let's throw {count} dice

generate_password/make_password/new_password
Generate a password./Make a random password.
p length,size,chars:i:Number of characters:n8-32!
w a password of {length} characters
u make a password with {length} characters|generate a {length} character password|
  I need a password of length {length}|new password, {length} characters|create a {length} letter password|
  give me a random password with {length} characters
m make a password|generate a password => How long should it be?

set_channel/change_channel/tv_channel
Change the TV channel./Switch the TV to a channel.
p channel,station,name:s:The channel:channel!
w the TV on {channel}
u switch the TV to {channel}|put on {channel}|change to {channel}|I want to watch {channel}|turn the TV to {channel}|
  show {channel} on TV
m change the channel|switch the TV to another channel => Which channel?

start_vacuum/clean_room/vacuum_room
Start the robot vacuum in a room./Clean a room with the robot.
p room,area,zone:s:The room:room!
w the {room} cleaned
u vacuum the {room}|clean the {room}|start the vacuum in the {room}|send the robot to the {room}|hoover the {room}|
  the {room} is dirty, clean it
r {"status": "cleaning"} => The robot is cleaning the {room}.
m start the vacuum|vacuum the floor => Which room?

print_document/print_file/send_to_printer
Print a document./Send a file to the printer.
p file,document,path:s:The file:file!;copies,count:i:Number of copies:n2-20
w {file} on paper
u print {file}|print {copies} copies of {file}|send {file} to the printer|I need {file} on paper|
  make {copies} copies of {file}|please print the file {file}
m print something|print the document => Which file?

tell_joke/get_joke/joke
Tell a joke on a topic./Get a joke.
p topic,about,subject:s:Topic of the joke:joketopic!
w a joke about {topic}
u tell me a joke about {topic}|joke about {topic}|make me laugh with a {topic} joke|do you know a joke about {topic}|
  I want a joke about {topic}|say something funny about {topic}

get_quote/quote_of/find_quote
Get a quote by an author./Find a famous quote.
p author,person,by:s:The author:author!
w a quote by {author}
u give me a quote by {author}|quote {author}|a famous line by {author}|find a quote from {author}|
  what did {author} say|read me something by {author}

log_workout/add_exercise/track_fitness
Log a workout./Record exercise in the fitness diary.
p activity,exercise,sport:s:The exercise:exercise!;minutes,duration,length:i:Minutes of exercise:n5-120!
w {minutes} minutes of {activity} logged
u log {minutes} minutes of {activity}|I did {minutes} minutes of {activity}|
  add {minutes} minutes of {activity} to my diary|record {activity} for {minutes} minutes|
  track {minutes} minutes of {activity}|{minutes} minutes of {activity} done, log it
r {"status": "logged"} => I logged {minutes} minutes of {activity}.
m log my swimming|log a run => For how many minutes?

track_parcel/package_status/track_package
Track a parcel./Find where a package is.
p number,tracking_number,code:s:Tracking number:code8!
w the parcel {number}
u where is my parcel {number}|track {number}|track package {number}|what is the status of parcel {number}|
  find my package with number {number}|has {number} been delivered
r {"status": "in {#city}"} => Your parcel is in {#city}.
m where is my parcel|track my package => What is the tracking number?

add_to_cart/cart_add/shop_add_item
Put a product in the shopping cart./Add an item to the cart.
p item,product,name:s:The product:product!
w {item} in the cart
u add {item} to my cart|put {item} in the cart|I want to buy {item}|cart: {item}|add {item} to the basket|
  order {item} for me
r {"status": "added"} => I added {item} to your cart.

add_grocery/shopping_list_add/buy_list
Add an item to the shopping list./Put food on the shopping list.
p item,product,grocery:s:The item:grocery!
w {item} on the shopping list
u add {item} to the shopping list|we need {item}|put {item} on my grocery list|we are out of {item}|
  shopping list: {item}|don't forget to buy {item}
r {"status": "added"} => {item} is on your shopping list.

order_status/get_order/check_order
Check the status of an order./Look up an order.
p order_id,id,order_number:s:Number of the order:n1000-99999!
w the status of order {order_id}
u where is order {order_id}|check order {order_id}|status of my order {order_id}|has order {order_id} shipped|
  look up order number {order_id}|what happened to order {order_id}
r {"status": "shipped"} => Order {order_id} has shipped.
m where is my order|check my order => What is the order number?

get_balance/account_balance/check_balance
Get the balance of a bank account./Check how much money is in an account.
p account,account_name,type:s:Which account:account!
w the balance of the {account} account
u what is the balance of my {account} account|how much money is in my {account} account|check my {account} balance|
  {account} account balance|show the money in my {account} account|balance of {account}
r {"balance": {#n20-4000}} => There are {#n20-4000} dollars in your {account} account.
m what is my balance|check my balance => Which account?

transfer_money/send_money/pay_person
Send money to a person./Transfer an amount of money.
p to,recipient,payee:s:Who gets the money:person!;amount,sum,value:n:Amount of money:n5-500!
w {amount} dollars sent to {to}
u send {amount} dollars to {to}|transfer {amount} dollars to {to}|pay {to} {amount} dollars|
  give {to} {amount} dollars|I owe {to} {amount} dollars, send it|wire {amount} dollars to {to}
r {"status": "done"} => I sent {amount} dollars to {to}.
m send money to Anna|pay Ben => How much?

switch_device/power_device/toggle_device
Turn a device on or off./Switch a device at home.
p device,appliance,name:s:The device:device!;state,power,action:s:On or off:onoff!
w the {device} {state}
u turn {state} the {device}|switch the {device} {state}|{device} {state}|power {state} the {device}|
  please turn the {device} {state}|I want the {device} {state}
r {"status": "ok"} => The {device} is {state}.

find_nearby/places_nearby/locate_place
Find a place nearby./Search places of a kind near the user.
p kind,type,category:s:Kind of place:place!
w a {kind} nearby
u find a {kind} near me|where is the nearest {kind}|is there a {kind} nearby|show me a {kind} around here|
  I am looking for a {kind}|closest {kind}

team_score/get_score/match_result
Get the last result of a team./Look up a sports score.
p team,club,name:s:Name of the team:team!
w the score of {team}
u did {team} win|what is the score of {team}|how did {team} do|result of {team}|tell me the {team} score|
  latest score for {team}

order_drink/coffee_order/buy_drink
Order a drink./Order a drink in some size.
p drink,beverage,item:s:The drink:drink!;size,cup:s:Size of the drink:size!
w a {size} {drink}
u order a {size} {drink}|I would like a {size} {drink}|one {size} {drink} please|get me a {size} {drink}|
  can I have a {size} {drink}|{size} {drink} to go
m order a latte|get me a green tea => What size: small, medium or large?

draw_image/generate_image/make_picture
Draw a picture./Generate an image from a description.
p prompt,description,subject:s:What to draw:subjectimg!
w a picture of {prompt}
u draw {prompt}|make a picture of {prompt}|generate an image of {prompt}|I want a picture of {prompt}|paint {prompt}|
  create an image showing {prompt}
m draw a picture|make an image => What should it show?

play_podcast/start_podcast/podcast_play
Play a podcast./Start the latest episode of a podcast.
p name,podcast,show:s:Name of the podcast:podcast!
w the podcast {name}
u play the podcast {name}|start the podcast {name}|I want to listen to the podcast {name}|
  play the latest episode of {name}|put on the {name} podcast|new episode of {name} please
r {"status": "playing"} => Now playing {name}.

crypto_price/coin_price/get_coin
Get the price of a coin./Look up a crypto price.
p coin,currency,name:s:Name of the coin:crypto!
w the price of {coin}
u what is the price of {coin}|how much is one {coin}|{coin} price|check {coin}|what is {coin} worth|how is {coin} doing

country_info/get_country/country_facts
Get facts about a country./Look up a country.
p country,name,nation:s:Name of the country:country!
w facts about {country}
u tell me about the country {country}|facts about {country}|how many people live in {country}|
  what is the capital of {country}|look up {country}|give me information on {country}

open_ticket/create_ticket/report_issue
Open a support ticket./Report a problem to support.
p problem,issue,summary:s:What is wrong:problem!;priority,severity:s:How urgent it is:priority
w a ticket: {problem}
u open a ticket: {problem}|report that {problem}|tell support that {problem}|
  create a {priority} priority ticket: {problem}|file a ticket, {problem}|I have a problem: {problem}
r {"ticket": {#n100-999}} => I opened ticket {#n100-999} for you.

get_forecast/weather_forecast/forecast_lookup/predict_weather/fetch_forecast
Get the weather forecast for a city and day./Forecast the weather for a given day.
p city,location,place:s:City:city!;day,date,when:s:Day:weathertime!
w the forecast for {city}, {day}
u what will the weather be in {city} {day}|give me the forecast for {city} for {day}|will it rain in {city} {day}|forecast for {city} {day}|how will the weather be {day} in {city}|will it be sunny in {city} {day}|show me the {day} forecast for {city}|I travel to {city} {day}. Will it be warm
r {"high": {#n-5-32}, "sky": "{#sky}"} => Expect {#sky} weather in {city} {day}, up to {#n-5-32} degrees.

get_air_quality/air_quality_index/check_air/pollution_level/aqi_lookup
Get the air quality in a city./Check how clean the air is in a place.
p city,location,place:s:City:city!
w the air quality in {city}
u how is the air quality in {city}|is the air clean in {city}|check the air pollution in {city}|what is the AQI in {city}|is there smog in {city}|how polluted is {city} right now|tell me the air quality index for {city}|can I run outside in {city}, or is the air bad
r {"aqi": {#n2-99}} => The air quality index in {city} is {#n2-99}.

delete_alarm/remove_alarm/cancel_alarm/alarm_off/clear_alarm
Delete an alarm./Cancel the alarm at a given time.
p time,at,alarm_time:s:Time:time!
w to delete the alarm at {time}
u delete my {time} alarm|cancel the alarm at {time}|remove the alarm for {time}|turn off the {time} alarm|I do not need the {time} alarm|get rid of my alarm at {time}|drop the {time} wake-up alarm|clear the alarm set for {time}
r {"status": "ok"} => The {time} alarm is deleted.

delete_event/cancel_event/remove_event/drop_appointment/cancel_meeting
Remove an event from the calendar./Cancel a calendar event.
p title,event,name:s:Title:event!
w to cancel {title}
u cancel {title}|remove {title} from my calendar|delete the event {title}|take {title} off my schedule|I cannot make it to {title}, cancel it|drop {title} from my calendar|call off {title}|erase {title} from the calendar
r {"status": "ok"} => I removed {title} from your calendar.

search_notes/find_note/lookup_note/query_notes
Search the saved notes./Find notes that mention something.
p query,keyword,text:s:Query:topic!
w notes about {query}
u find my notes about {query}|search my notes for {query}|what did I write about {query}|do I have a note on {query}|look in my notes for {query}|show notes that mention {query}|open my note about {query}|where is my note about {query}
r {"notes": ["{#note}"]} => Your note says: {#note}.

complete_task/finish_task/mark_done/check_off_task/close_task
Mark a task as done./Complete a to-do item.
p task,item,title:s:Task:task!
w to mark "{task}" as done
u mark {task} as done|I finished this task: {task}|check off {task}|{task} is done, tick it off|complete the task {task}|set {task} to done|cross {task} off my list|close the task {task}
r {"status": "ok"} => Well done. "{task}" is marked as done.

check_email/read_inbox/get_emails/list_mail/fetch_messages
Check the inbox for new emails./Read the newest emails.
p sender,from,person:s:Sender:person
w to check the inbox
u check my email|do I have new mail|any emails from {sender}|read my inbox|show me emails from {sender}|did {sender} write to me|what is new in my inbox|open my mail|look for mail from {sender}
r {"unread": {#n2-12}} => You have {#n2-12} unread emails.

play_artist/artist_radio/play_songs_by/shuffle_artist
Play songs by an artist./Shuffle music of one artist.
p artist,band,name:s:Artist:artist!
w music by {artist}
u play something by {artist}|play some {artist}|I am in the mood for {artist}|put on music by {artist}|shuffle {artist}|let us listen to {artist}|I want to hear {artist}|play the best songs of {artist}
r {"status": "ok"} => Playing music by {artist}.

play_playlist/start_playlist/open_playlist/run_playlist
Play a playlist./Start one of the user's playlists.
p playlist,name,title:s:Playlist:playlist!
w the playlist {playlist}
u play my {playlist} playlist|start the playlist {playlist}|put on my {playlist} list|I want to hear my {playlist} playlist|shuffle the {playlist} playlist|open {playlist} and play it|play the {playlist} mix|resume my {playlist} playlist
r {"status": "ok"} => Playing the {playlist} playlist.

add_to_playlist/playlist_add/save_song/append_song
Add a song to a playlist./Put a track on a playlist.
p song,track,title:s:Song:song!;playlist,list,name:s:Playlist:playlist!
w to add {song} to {playlist}
u add {song} to my {playlist} playlist|put {song} on {playlist}|save {song} to the playlist {playlist}|{song} belongs on my {playlist} list, add it|I want {song} in my {playlist} playlist|include {song} in {playlist}|append {song} to {playlist}|drop {song} into my {playlist} playlist
r {"status": "ok"} => {song} is now on your {playlist} playlist.

play_radio/tune_radio/start_radio/radio_station/open_station
Play a radio station./Tune in to a station.
p station,name,channel:s:Station:station!
w the station {station}
u play {station}|tune in to {station}|put on {station}|turn on the radio, {station}|I want to listen to {station}|switch the radio to {station}|start {station}|radio on, {station} please
r {"status": "ok"} => You are listening to {station}.
m turn on the radio => Which station would you like?

dim_light/set_brightness/light_brightness/adjust_brightness
Set the brightness of a room's lights./Dim the lights to a percentage.
p room,location:s:Room:room!;brightness,percent,level:i:Brightness:n1-100!
w the {room} lights at {brightness} percent
u dim the {room} lights to {brightness} percent|set the {room} light to {brightness} percent|make the {room} lights {brightness} percent bright|{room} brightness {brightness}|put the {room} lamp at {brightness} percent|change the brightness in the {room} to {brightness}|I want {brightness} percent light in the {room}|brightness of the {room}: {brightness} percent
r {"status": "ok"} => The {room} lights are at {brightness} percent.

get_indoor_temperature/read_thermostat/room_temperature/indoor_climate
Read the temperature of a room./Tell how warm a room is.
p room,location:s:Room:room!
w the temperature in the {room}
u how warm is it in the {room}|what is the temperature in the {room}|is the {room} cold|check how warm the {room} is|read the thermometer in the {room}|tell me the {room} temperature|is it hot in the {room}|how many degrees does the {room} have
r {"celsius": {#n15-26}} => It is {#n15-26} degrees in the {room}.

percent_of/calculate_percentage/get_percentage/percentage_tool
Calculate a percentage of a number./How much is x percent of y.
p percent,rate:i:Percent:n1-100!;number,amount,total:i:Number:n5-500!
w {percent} percent of {number}
u what is {percent} percent of {number}|how much is {percent} percent of {number}|calculate {percent} percent of {number}|take {percent} percent of {number}|{percent} percent of {number} is how much|give me {percent} percent of {number}|find {percent} percent of {number}|I need {percent} percent of {number}

calculate_tip/tip_calculator/compute_tip/get_tip
Calculate the tip for a bill./Work out a tip.
p bill,amount,total:i:Bill:n5-500!;percent,rate:i:Percent:n1-100!
w a {percent} percent tip on {bill}
u what is a {percent} percent tip on {bill} dollars|calculate a {percent} percent tip for a bill of {bill}|how much is the tip on {bill} at {percent} percent|tip {percent} percent on {bill} dollars|the bill is {bill}, I tip {percent} percent. How much is that|work out a tip of {percent} percent on {bill}|my dinner was {bill} dollars, what is a {percent} percent tip|give me the {percent} percent tip for {bill}

rectangle_area/calculate_area/get_area/area_of_rectangle
Calculate the area of a rectangle./Multiply width and height of a rectangle.
p width,w,a:i:Width:n2-99!;height,h,b:i:Height:n2-99!
w the area of a {width} by {height} rectangle
u what is the area of a rectangle of {width} by {height}|area of a {width} x {height} rectangle|my room is {width} by {height}. What is its area|calculate the area of a rectangle with width {width} and height {height}|a field is {width} wide and {height} high, how big is it|find the area: width {width}, height {height}|how large is a {width} by {height} rectangle|compute the surface of a rectangle {width} wide and {height} high

get_synonyms/find_synonyms/thesaurus/similar_words
Find synonyms of a word./Words with the same meaning.
p word,term:s:Word:word!
w synonyms of {word}
u what is another word for {word}|give me synonyms of {word}|find a synonym for {word}|which words mean the same as {word}|I need a different word for {word}|list synonyms for {word}|what can I say instead of {word}|words like {word}

find_rhymes/rhyme_finder/get_rhymes/words_that_rhyme
Find words that rhyme with a word./List rhymes.
p word,term:s:Word:word!
w rhymes for {word}
u what rhymes with {word}|find a rhyme for {word}|give me words that rhyme with {word}|I need a rhyme for {word}|list rhymes with {word}|which words rhyme with {word}|my poem needs a rhyme on {word}|rhyme {word}

wikipedia_lookup/wiki_search/encyclopedia/get_article/wiki_summary
Get an encyclopedia article./Look up a topic in the encyclopedia.
p topic,title,query:s:Topic:topic!
w an article about {topic}
u get the encyclopedia article on {topic}|look up {topic} in the encyclopedia|what does the wiki say about {topic}|open the wiki page of {topic}|read me the article about {topic}|find {topic} on the wiki|show the encyclopedia entry for {topic}|I want to read a wiki article about {topic}

next_game/upcoming_match/get_fixture/game_schedule/match_schedule
Find the next game of a team./When a team plays next.
p team,club,name:s:Team:team!
w the next game of {team}
u when do {team} play next|when is the next game of {team}|next {team} match|who do {team} play next|show the upcoming {team} game|find the next fixture of {team}|is {team} playing soon|tell me when {team} plays again
r {"date": "{#date}", "time": "{#time}"} => {team} play next on {#date} at {#time}.

get_calories/calorie_lookup/nutrition_info/food_calories
Get the calories of a food./Look up nutrition facts.
p food,item,dish:s:Food:food!
w the calories of {food}
u how many calories are in {food}|is {food} healthy|calories of {food}|tell me the calories in {food}|nutrition facts for {food}|how fattening is {food}|check the calories of {food}|how much energy does {food} have
r {"calories": {#n100-2000}} => {food} has about {#n100-2000} calories.

order_food/food_delivery/order_meal/takeaway_order/deliver_food
Order food for delivery./Order a dish.
p dish,item,food:s:Dish:food!;quantity,count,number:i:Quantity:n2-12
w to order {dish}
u order {dish}|I want to order {dish}|get me {dish} delivered|order {quantity} portions of {dish}|I am hungry, order {dish}|have {dish} delivered to me|order some {dish} for dinner|let us get {quantity} orders of {dish}
r {"status": "ok"} => Your order of {dish} is on its way.
m order some food => What would you like to eat?

check_traffic/traffic_info/get_traffic/traffic_report/road_status
Check the traffic in a city./Get a traffic report.
p city,area,location:s:City:city!
w the traffic in {city}
u how is the traffic in {city}|is there a traffic jam in {city}|check the traffic in {city}|traffic report for {city}|are the roads busy in {city}|how bad is traffic in {city} now|tell me about traffic in {city}|will I get stuck in traffic in {city}
r {"status": "heavy", "delay_min": {#n2-99}} => Traffic in {city} is heavy, with a delay of {#n2-99} minutes.

flight_status/check_flight/track_flight/get_flight_status
Check the status of a flight./Track a flight by number.
p flight,flight_number,number,code:s:Flight:code8!
w the status of flight {flight}
u what is the status of flight {flight}|is flight {flight} on time|check flight {flight}|has {flight} landed|track flight {flight}|is {flight} delayed|when does flight {flight} arrive|give me an update on {flight}
r {"status": "on time"} => Flight {flight} is on time.
m is my flight on time? => What is the flight number?

rent_car/car_rental/book_car/hire_car
Rent a car in a city./Book a rental car.
p city,location,pickup:s:City:city!;days,duration,length:i:Days:n2-12!
w a rental car in {city} for {days} days
u rent a car in {city} for {days} days|I need a rental car in {city} for {days} days|book a car for {days} days in {city}|hire a car in {city}, {days} days|get me a car in {city} for {days} days|I want to rent a car for {days} days in {city}|reserve a rental car for {days} days in {city}|car hire in {city} for {days} days
r {"status": "ok"} => Your car in {city} is booked for {days} days.

movie_times/get_showtimes/cinema_schedule/showtimes/screening_times
Find showtimes of a movie in a city./Cinema times for a film.
p movie,title,film:s:Movie:movie!;city,location:s:City:city!
w showtimes of {movie} in {city}
u when is {movie} playing in {city}|showtimes for {movie} in {city}|where can I see {movie} in {city}|is {movie} in the cinema in {city}|at what time does {movie} run in {city}|find a cinema in {city} that shows {movie}|I want to watch {movie} at a cinema in {city}|movie times: {movie}, {city}
r {"times": ["{#time}"]} => {movie} plays in {city} at {#time}.

books_by_author/author_search/list_books/author_books
List books of an author./Find books by writer.
p author,writer,name:s:Author:author!
w books by {author}
u which books did {author} write|list the books of {author}|show me novels by {author}|find books by {author}|what else did {author} write|I like {author}, what books are there|give me a list of works by {author}|search for books by {author}

move_file/relocate_file/mv/transfer_file
Move a file to a folder./Put a file in another directory.
p file,path,source:s:File:file!;folder,destination,to:s:Folder:folder!
w to move {file} to {folder}
u move {file} to {folder}|put {file} in the {folder} folder|transfer {file} to {folder}|{file} should be in {folder}, move it|relocate {file} to {folder}|shift {file} into {folder}|I want {file} moved to {folder}|take {file} and put it into {folder}
r {"status": "ok"} => {file} is now in {folder}.

find_file/search_files/locate_file/file_search
Find files by name./Search the disk for a file.
p name,pattern,query:s:Name:file!
w to find {name}
u where is {name}|find the file {name}|search for {name} on my disk|locate {name}|I lost {name}, find it|look for a file named {name}|in which folder is {name}|help me find {name}
r {"path": "{#folder}/{name}"} => {name} is in the folder {#folder}.

search_images/find_photos/photo_search/image_search
Search photos of a thing./Find pictures online.
p query,subject,q:s:Query:animal!
w photos of a {query}
u find photos of a {query}|show me pictures of a {query}|search images of a {query}|I want to see a photo of a {query}|find me a nice {query} photo|look for {query} pictures|what does a {query} look like? Show me a photo|get an image of a {query}

show_camera/view_camera/camera_feed/security_camera
Show a security camera./Open a camera feed.
p camera,location,name:s:Camera:camera!
w the {camera} camera
u show me the {camera} camera|who is at the {camera}? Show the camera|open the {camera} camera feed|what does the {camera} camera see|view the {camera} camera|check the {camera} cam|I want to see the {camera} on camera|put the {camera} camera on screen
r {"status": "ok"} => Here is the {camera} camera.

get_horoscope/horoscope/daily_horoscope/zodiac_reading
Get today's horoscope for a sign./Read the horoscope of a zodiac sign.
p sign,zodiac,star_sign:s:Sign:sign!
w the horoscope for {sign}
u what is my horoscope? I am a {sign}|horoscope for {sign}|read the {sign} horoscope|what do the stars say for {sign}|give me today's {sign} horoscope|I am {sign}. How will my day be, say the stars|tell me the horoscope of {sign}|check the zodiac for {sign}
m read me my horoscope => What is your star sign?

random_fact/fun_fact/get_fact/animal_fact/fact_about
Get a fun fact about an animal./Animal facts.
p animal,topic,about:s:Animal:animal!
w a fun fact about the {animal}
u tell me a fun fact about the {animal}|give me a fact on the {animal}|what is something funny about the {animal}|a {animal} fact please|fun fact: {animal}|surprise me with a {animal} fact|I want to learn a fact about the {animal}|share a fun {animal} fact

trivia_question/quiz_me/get_trivia/start_quiz
Start a quiz question on a topic./Get a trivia question.
p topic,category,subject:s:Topic:topic!;difficulty,level:s:Difficulty:level
w a quiz on {topic}
u quiz me on {topic}|ask me a trivia question about {topic}|give me a {difficulty} question about {topic}|start a quiz about {topic}|I want a {difficulty} quiz on {topic}|test me on {topic}|play trivia about {topic}|let us do a {difficulty} trivia round on {topic}

log_weight/record_weight/save_weight/add_weight/track_weight
Log the user's body weight./Record a weight in kilograms.
p weight,kg,value,kilograms:i:Weight:n45-110!
w to log a weight of {weight} kg
u log my weight: {weight} kg|I weigh {weight} kilos today|record a weight of {weight} kilograms|my weight is {weight}, save it|add {weight} kg to my weight log|today the scale says {weight}|note my weight, {weight} kg|track my weight: {weight}
r {"status": "ok"} => Your weight of {weight} kg is logged.
m log my weight => How much do you weigh?

log_water/add_water/drink_log/track_water
Log glasses of water./Record how much water the user drank.
p glasses,count,amount:i:Glasses:n2-12!
w to log {glasses} glasses of water
u I drank {glasses} glasses of water|log {glasses} glasses of water|add {glasses} glasses to my water log|record {glasses} glasses of water|I had {glasses} glasses of water today|track {glasses} waters|put down {glasses} glasses of water|water: {glasses} glasses
r {"status": "ok"} => I logged {glasses} glasses of water.

log_mood/track_mood/record_feeling/mood_diary
Log the user's mood./Record a feeling in the diary.
p mood,feeling,value:s:Mood:mood!
w to log a {mood} mood
u log that I feel {mood}|I am {mood} today, note it in my mood diary|record my mood: {mood}|mood: {mood}|put {mood} in my mood log|track my mood as {mood}|today I feel {mood}, save my mood|my mood is {mood}
r {"status": "ok"} => Your mood is logged as {mood}.

get_price/product_price/check_price/price_lookup
Get the price of a product./Check what a product costs.
p product,item,name:s:Product:product!
w the price of {product}
u how much is {product}|what does {product} cost|check the price of {product}|price of {product}|tell me the price of {product}|is {product} expensive|find out what {product} costs|look up the price for {product}
r {"price": {#n5-500}} => It costs {#n5-500} dollars.

cancel_order/stop_order/revoke_order/abort_order
Cancel an order./Stop an order before it ships.
p order_id,order,id,number:s:Order id:code8!
w to cancel order {order_id}
u cancel order {order_id}|I want to cancel my order {order_id}|stop order {order_id}|please call off order number {order_id}|I changed my mind, cancel {order_id}|undo order {order_id}|do not send order {order_id}|drop my order {order_id}
r {"status": "ok"} => Order {order_id} is cancelled.
m cancel my order => Which order number?

pay_bill/settle_bill/bill_payment/pay_invoice
Pay a bill./Settle one of the user's bills.
p bill,type,name:s:Bill:bill!
w to pay the {bill} bill
u pay my {bill} bill|settle the {bill} bill|the {bill} bill is due, pay it|I want to pay the {bill} bill|take care of the {bill} bill|make a payment on my {bill} bill|pay off the {bill} bill|please pay for {bill}
r {"status": "ok"} => Your {bill} bill is paid.
m pay my bill => Which bill should I pay?

buy_tickets/book_tickets/event_tickets/get_tickets/ticket_order
Buy tickets for a museum./Order museum tickets.
p museum,place,venue:s:Museum:museum!;count,number,tickets,people:i:Count:n2-12!
w {count} tickets for {museum}
u buy {count} tickets for {museum}|I need {count} tickets to {museum}|book {count} tickets for {museum}|get us {count} tickets for {museum}|we are {count} people and want to visit {museum}, buy tickets|order {count} entry tickets to {museum}|{count} tickets for {museum} please|reserve {count} tickets at {museum}
r {"status": "ok"} => I bought {count} tickets for {museum}.

water_plant/start_watering/irrigate/water_garden
Water a plant for some minutes./Start watering.
p plant,name,which:s:Plant:plant!;minutes,duration,time:i:Minutes:n2-99
w to water the {plant}
u water the {plant}|water my {plant} for {minutes} minutes|give the {plant} some water|the {plant} is dry, water it|start watering the {plant}|let the water run on the {plant} for {minutes} minutes|my {plant} needs water|please see that the {plant} gets water
r {"status": "ok"} => The {plant} is being watered.

screen_brightness/set_screen_brightness/display_brightness/dim_screen
Set the screen brightness in percent./Change how bright the display is.
p level,percent,brightness,value:i:Level:n1-100!
w the screen at {level} percent
u set the screen brightness to {level}|make the screen {level} percent bright|screen brightness {level} percent|dim the display to {level} percent|change the screen to {level} percent brightness|put the display at {level} percent|my screen should be at {level} percent|adjust the display to {level}
r {"status": "ok"} => The screen is at {level} percent.
m change the screen brightness => To what level?

set_wifi/toggle_wifi/wifi_power/switch_wifi
Turn the wifi on or off./Switch wireless on or off.
p state,power,mode:s:State:onoff!
w the wifi {state}
u turn {state} the wifi|switch the wifi {state}|wifi {state}|turn the wireless {state}|put the wifi {state}|I want the wifi {state}|switch {state} wireless|set wifi to {state}
r {"status": "ok"} => The wifi is {state}.
m change the wifi => Should I turn it on or off?

count_words/word_count/text_length/count_text
Count the words of a text./Tell how many words a text has.
p text,input,content:s:Text:phrase!
w the number of words in "{text}"
u how many words are in "{text}"|count the words in "{text}"|word count of "{text}"|how long is the text "{text}"|tell me the number of words in "{text}"|"{text}" has how many words|count words: "{text}"|I want the word count for "{text}"

to_uppercase/uppercase_text/upper_case/make_uppercase
Turn a text into capital letters./Convert text to upper case.
p text,input,value:s:Text:phrase!
w "{text}" in capitals
u write "{text}" in capitals|make "{text}" upper case|turn "{text}" into capital letters|uppercase "{text}"|I want "{text}" in big letters|convert "{text}" to upper case|put "{text}" in all caps|change "{text}" to capitals

next_holiday/public_holidays/get_holidays/holiday_lookup
Get the next public holiday of a country./Look up public holidays.
p country,region,place:s:Country:country!
w the next holiday in {country}
u when is the next public holiday in {country}|which holiday comes next in {country}|are there holidays in {country} soon|next holiday in {country}|look up the public holidays of {country}|is there a day off soon in {country}|tell me the next bank holiday in {country}|show holidays in {country}
r {"holiday": "{#date}"} => The next holiday in {country} is on {#date}.

zip_lookup/postal_code/get_place_by_zip/find_zip
Find the place of a zip code./Look up a postal code.
p zip,code,postal_code:i:Zip:n10000-99999!
w the place with zip code {zip}
u which place has the zip code {zip}|look up zip {zip}|where is {zip}|what town is postal code {zip}|find the city for zip {zip}|zip code {zip}, which city is that|tell me the place of {zip}|search the postal code {zip}
r {"city": "{#city}"} => The zip code {zip} belongs to {#city}.
m look up a zip code => Which zip code?

sunrise_time/sun_times/get_sunset/sunset_lookup
Get sunrise and sunset of a city./When the sun rises and sets.
p city,location,place:s:City:city!
w sunrise and sunset in {city}
u when does the sun rise in {city}|when is sunset in {city}|sunrise in {city}|at what time does it get dark in {city}|tell me the sunset time for {city}|how early is it light in {city}|look up sunrise and sunset in {city}|when does the sun go down in {city}
r {"sunset": "{#time}"} => The sun sets in {city} at {#time}.
"""

VERBS = """find lookup scan fetch check count order rent buy sell paint clean repair feed move open close start stop
track rate list sort rename copy delete update create draw book cancel renew pause share print export import measure
weigh test lock unlock inspect polish charge reset pack ship store label archive mark pick water freeze heat mix wrap
log tune calibrate reserve assign merge split sync verify upload launch dock""".split()

NOUNS = """orchid meteor parcel engine candle violin turbine garden ticket lantern crystal harbor tractor beehive
comet anchor balloon blanket bridge bucket cabin camera canoe carpet castle chimney cookie crane curtain desk dragon
drone drum eagle ferry filter flute forest fountain gadget glacier goblet hammer helmet invoice island jacket kettle
kite ladder lens locker magnet mirror module needle notebook oven paddle parrot pebble pillow pipeline planet puzzle
rabbit radar reactor ribbon robot rocket saddle satellite sensor shelf statue telescope tunnel vault wagon widget
windmill zeppelin badge beacon cactus sample recipe contract coupon server dataset""".split()
