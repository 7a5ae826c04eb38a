/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c}from"./chunk-AKVS773J.js";import"./chunk-SWSD4C5N.js";import"./chunk-JVL6K2Y2.js";import"./chunk-OOJM4CTU.js";export{c as default,b as errorRate,a as verdict};
