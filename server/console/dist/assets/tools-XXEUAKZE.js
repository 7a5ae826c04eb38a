/* Licences of the libraries in this file: NOTICE.txt */
import{a,b}from"./chunk-W6O4AO4X.js";import"./chunk-6JJALMDV.js";import"./chunk-SJQVAKVA.js";import"./chunk-IMV4EARU.js";export{b as default,a as verdict};
